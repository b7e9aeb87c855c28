# SPDX-License-Identifier: Apache-2.0
# The example programs are built with everything else, so that none goes stale; each also builds on its own.
if(TARGET tilewright_runtime)
  add_subdirectory(examples/read_page)
  set_target_properties(read_page PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endif()
