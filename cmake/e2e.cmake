# SPDX-License-Identifier: Apache-2.0
# Real models, compiled and compared with onnxruntime. Those that are not fetched or exported are skipped, and say so.
if(TARGET tilewright)
  set(models ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/e2e/models.py)
  execute_process(COMMAND ${models} --list OUTPUT_VARIABLE names OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" names "${names}")
  foreach(name ${names})
    add_test(NAME e2e.${name} COMMAND ${models} ${name} --tool $<TARGET_FILE:tilewright>)
    set_tests_properties(e2e.${name} PROPERTIES SKIP_RETURN_CODE 77 LABELS e2e)
  endforeach()
  foreach(name pictures sentences speech page)
    add_test(NAME e2e.meaning.${name} COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/e2e/meaning.py ${name}
             --tool $<TARGET_FILE:tilewright>)
    set_tests_properties(e2e.meaning.${name} PROPERTIES SKIP_RETURN_CODE 77 LABELS e2e)
  endforeach()
  add_test(NAME e2e.quantized COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/e2e/quantized.py
           --tool $<TARGET_FILE:tilewright> --views 30)
  set_tests_properties(e2e.quantized PROPERTIES COST 40 SKIP_RETURN_CODE 77 LABELS e2e TIMEOUT 300)
  add_test(NAME e2e.external_data COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/e2e/external_data.py
           --tool $<TARGET_FILE:tilewright>)
  set_tests_properties(e2e.external_data PROPERTIES SKIP_RETURN_CODE 77 LABELS e2e)
  add_test(NAME conformance.onnx COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/conformance/run.py
           --tool $<TARGET_FILE:tilewright>)
  # A sample as C99; ./dev conformance --target c runs all of them.
  add_test(NAME conformance.c COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/conformance/run.py
           --tool $<TARGET_FILE:tilewright> --target c --sample 20)
  set_tests_properties(conformance.c PROPERTIES SKIP_RETURN_CODE 77 LABELS e2e TIMEOUT 300)
  # Samples with inputs whose sizes only a run has, and with inputs compiled in.
  foreach(inputs free constant)
    add_test(NAME conformance.${inputs} COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/conformance/run.py
             --tool $<TARGET_FILE:tilewright> --inputs ${inputs} --sample 60)
    set_tests_properties(conformance.${inputs} PROPERTIES SKIP_RETURN_CODE 77 LABELS e2e TIMEOUT 300)
  endforeach()
  # A machine without the compiler: whole suite by ./dev conformance --without-compiler.
  add_test(NAME conformance.without_compiler COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/conformance/run.py
           --tool $<TARGET_FILE:tilewright> --without-compiler --sample 15)
  set_tests_properties(conformance.without_compiler PROPERTIES SKIP_RETURN_CODE 77 LABELS e2e TIMEOUT 300)
  # Every pool that rounds its sizes up: with free sizes it has to wait for them where a window may be dropped.
  add_test(NAME conformance.free_pools COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/conformance/run.py
           --tool $<TARGET_FILE:tilewright> --inputs free pool_2d_ceil)
  set_tests_properties(conformance.free_pools PROPERTIES SKIP_RETURN_CODE 77 LABELS e2e TIMEOUT 300)
  # A sample as byte code.
  add_test(NAME conformance.stackvm COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/conformance/run.py
           --tool $<TARGET_FILE:tilewright> --target stackvm --sample 20)
  set_tests_properties(conformance.stackvm PROPERTIES SKIP_RETURN_CODE 77 LABELS e2e TIMEOUT 300)
  add_test(NAME e2e.neon_loops COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/e2e/neon_loops.py
           --tool $<TARGET_FILE:tilewright>)
  set_tests_properties(e2e.neon_loops PROPERTIES SKIP_RETURN_CODE 77 LABELS e2e)
  # Samples for other processors, where ./dev setup --cross has been.
  foreach(processor aarch64 riscv64)
    add_test(NAME conformance.${processor} COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/conformance/run.py
             --tool $<TARGET_FILE:tilewright> --target ${processor} --sample 40)
    set_tests_properties(conformance.${processor} PROPERTIES SKIP_RETURN_CODE 77 LABELS e2e TIMEOUT 2400)
  endforeach()
  set_tests_properties(conformance.onnx PROPERTIES SKIP_RETURN_CODE 77 LABELS e2e TIMEOUT 1500 RUN_SERIAL ON)
endif()
