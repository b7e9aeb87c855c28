# SPDX-License-Identifier: Apache-2.0
# The compiler once more without LLVM, of the rooms that are compiled already: only codegen has other files then
# (TILEWRIGHT_LLVM in CMakeLists.txt). What another room took of LLVM would be missing when it is linked.
# Not with a sanitizer, whose run time is in the program: a library that is complete in itself cannot be linked then.
if(NOT TARGET tilewright_compiler OR NOT TARGET tilewright OR NOT TILEWRIGHT_LLVM OR TILEWRIGHT_SANITIZE)
  return()
endif()
file(GLOB_RECURSE tw_plain_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/codegen/*.cc)
list(FILTER tw_plain_sources EXCLUDE REGEX "/codegen/llvm/")
add_library(tw_codegen_without_llvm STATIC ${tw_plain_sources})
set_target_properties(tw_codegen_without_llvm PROPERTIES UNITY_BUILD ${TILEWRIGHT_UNITY} UNITY_BUILD_BATCH_SIZE 8)
if(TILEWRIGHT_UNITY)
  target_compile_options(tw_codegen_without_llvm PRIVATE -Wno-subobject-linkage)
endif()
target_compile_options(tw_codegen_without_llvm PRIVATE ${tw_plain_options})
target_precompile_headers(tw_codegen_without_llvm REUSE_FROM tw_standard_headers)
target_link_libraries(tw_codegen_without_llvm PUBLIC tw_tir)
set(tw_plain_folder ${CMAKE_BINARY_DIR}/without_llvm)
add_library(tilewright_compiler_without_llvm SHARED $<TARGET_OBJECTS:tw_driver>)
target_include_directories(tilewright_compiler_without_llvm PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(tilewright_compiler_without_llvm PRIVATE tw_lower tw_te tw_codegen_without_llvm tw_tune tw_frontend tw_program tw_runtime tw_inputs)
target_link_options(tilewright_compiler_without_llvm PRIVATE -Wl,--no-undefined -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/compiler.map)
set_target_properties(tilewright_compiler_without_llvm PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${tw_plain_folder} OUTPUT_NAME tilewright_compiler)
# The program looks for the compiler beside itself.
add_custom_command(TARGET tilewright_compiler_without_llvm POST_BUILD
                   COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:tilewright> ${tw_plain_folder}/tilewright)
add_dependencies(tilewright_compiler_without_llvm tilewright)
add_test(NAME driver.without_llvm COMMAND sh ${CMAKE_SOURCE_DIR}/tests/e2e/without_llvm.sh ${tw_plain_folder} ${CMAKE_SOURCE_DIR} ${CMAKE_COMMAND})
set_tests_properties(driver.without_llvm PROPERTIES TIMEOUT 300)
