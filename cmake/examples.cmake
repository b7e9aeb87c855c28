# SPDX-License-Identifier: Apache-2.0
# The example programs are built with everything else, so that none goes stale; each also builds on its own.
if(TARGET tilewright_runtime)
  add_subdirectory(examples/read_page)
  set_target_properties(read_page PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endif()
if(TARGET tilewright_runtime)
  add_subdirectory(examples/run_model)
endif()
if(TARGET compile_and_run AND TILEWRIGHT_TESTS)
  set(net ${CMAKE_SOURCE_DIR}/tests/data/onnx/convnet.onnx)
  add_test(NAME examples.compile_and_run COMMAND compile_and_run ${net} ${CMAKE_BINARY_DIR}/example_net.so x=1x3x8x8)
  add_test(NAME examples.run_model_c COMMAND run_model_c ${CMAKE_BINARY_DIR}/example_net.so)
  add_test(NAME examples.run_model_cc COMMAND run_model_cc ${CMAKE_BINARY_DIR}/example_net.so)
  set_tests_properties(examples.compile_and_run PROPERTIES FIXTURES_SETUP example_net)
  set_tests_properties(examples.run_model_c examples.run_model_cc
                       PROPERTIES FIXTURES_REQUIRED example_net PASS_REGULAR_EXPRESSION "output [^:]+: [-0-9]")
endif()
