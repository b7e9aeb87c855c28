# SPDX-License-Identifier: Apache-2.0
# The compiler once more without LLVM, of the rooms that are compiled already: only codegen has other files then
# (TILEWRIGHT_LLVM in CMakeLists.txt). What another room took of LLVM would be missing when it is linked.
# Not with a sanitizer, whose run time is in the program: a library that is complete in itself cannot be linked then.
if(NOT TARGET tilewright_compiler OR NOT TARGET tilewright OR NOT TILEWRIGHT_LLVM OR TILEWRIGHT_SANITIZE)
  return()
endif()
add_library(tw_codegen_without_llvm OBJECT ${CMAKE_SOURCE_DIR}/src/codegen/without_llvm.cc)
target_compile_options(tw_codegen_without_llvm PRIVATE ${tw_plain_options})
target_precompile_headers(tw_codegen_without_llvm REUSE_FROM tw_standard_headers)
target_link_libraries(tw_codegen_without_llvm PUBLIC tw_tir)
set(tw_plain_folder ${CMAKE_BINARY_DIR}/without_llvm)
add_library(tilewright_compiler_without_llvm SHARED $<TARGET_OBJECTS:tw_driver> $<TARGET_OBJECTS:tw_interpret> $<TARGET_OBJECTS:tw_codegen_without_llvm>)
target_include_directories(tilewright_compiler_without_llvm PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(tilewright_compiler_without_llvm PRIVATE tw_lower tw_te $<TARGET_FILE:tw_codegen> tw_tune tw_frontend tw_program tw_runtime tw_inputs tw_tir)
add_dependencies(tilewright_compiler_without_llvm tw_codegen)
target_link_options(tilewright_compiler_without_llvm PRIVATE -Wl,--no-undefined -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/compiler.map)
set_target_properties(tilewright_compiler_without_llvm PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${tw_plain_folder} OUTPUT_NAME tilewright_compiler)
# The program looks for the compiler beside itself.
add_custom_command(TARGET tilewright_compiler_without_llvm POST_BUILD
                   COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:tilewright> ${tw_plain_folder}/tilewright)
add_dependencies(tilewright_compiler_without_llvm tilewright)
add_test(NAME driver.without_llvm COMMAND sh ${CMAKE_SOURCE_DIR}/tests/e2e/without_llvm.sh ${tw_plain_folder} ${CMAKE_SOURCE_DIR} ${CMAKE_COMMAND})
set_tests_properties(driver.without_llvm PROPERTIES TIMEOUT 300)
