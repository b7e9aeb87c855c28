# SPDX-License-Identifier: Apache-2.0
# tests/fuzz/NAME_fuzz.cc becomes fuzz_NAME, and a test that runs it on a few thousand seeded inputs. The first lines of the
# file name the room it needs ("fuzz-room: frontend") and, if it has one, the folder of its seeds ("fuzz-seeds: tests/...").
# With TILEWRIGHT_FUZZ_COVERAGE (./dev fuzz) inputs that reach new code are kept; only the target fuzz_targets links then.
file(GLOB targets CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cc)
# What feeds them is compiled once; the folder of its seeds is a target's own.
add_library(tw_fuzz_driver OBJECT ${CMAKE_SOURCE_DIR}/tests/fuzz/driver_main.cc)
foreach(source ${targets})
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name ${name})
  file(STRINGS ${source} facts LIMIT_COUNT 8)
  string(REGEX MATCH "fuzz-room: ([a-z_]+)" found "${facts}")
  set(room ${CMAKE_MATCH_1})
  if(NOT found OR NOT TARGET tw_${room})
    continue()
  endif()
  set(seeds tests/fuzz/corpus/${name})
  if("${facts}" MATCHES "fuzz-seeds: ([A-Za-z0-9_/.]+)")
    set(seeds ${CMAKE_MATCH_1})
  endif()
  set(folder ${CMAKE_BINARY_DIR}/fuzz_seeds_of_${name}.cc)
  file(CONFIGURE OUTPUT ${folder} CONTENT "extern const char fuzz_seeds_folder[];\nconst char fuzz_seeds_folder[] = \"${CMAKE_SOURCE_DIR}/${seeds}\";\n")
  add_executable(fuzz_${name} ${source} ${folder} $<TARGET_OBJECTS:tw_fuzz_driver>)
  target_link_libraries(fuzz_${name} PRIVATE tw_${room})
  tw_plain_code(fuzz_${name})
  target_include_directories(fuzz_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(fuzz_${name} PRIVATE TW_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  list(APPEND programs fuzz_${name})
  add_test(NAME fuzz.${name} COMMAND fuzz_${name} --runs 3000)
endforeach()
add_custom_target(fuzz_targets DEPENDS ${programs})

# Random ONNX models, and those that once failed (tests/fuzz/models/search.py).
if(TARGET model_runner)
  set(search ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/fuzz/models/search.py --program $<TARGET_FILE:model_runner>)
  add_test(NAME fuzz.models COMMAND ${search} --seed 1 --count 120 --seconds 120)
  add_test(NAME fuzz.models_that_failed COMMAND ${search} --replay ${CMAKE_SOURCE_DIR}/tests/data/fuzz_models)
  # onnxruntime's own operators, and models as its optimiser writes them (tests/conformance/beside_onnxruntime.py).
  set(beside ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/conformance/beside_onnxruntime.py --program $<TARGET_FILE:model_runner>)
  add_test(NAME conformance.beside_onnxruntime COMMAND ${beside})
  # Operators in the types that their schemas allow (tests/conformance/pairs.py): a sample.
  add_test(NAME conformance.pairs COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/conformance/pairs.py
           --program $<TARGET_FILE:model_runner> --sample 25 --cases 1)
  add_test(NAME conformance.optimised_models COMMAND ${beside} --models ${CMAKE_SOURCE_DIR}/.cache/models/ppocr_cls.onnx
           ${CMAKE_SOURCE_DIR}/.cache/zoo/mlp.onnx ${CMAKE_SOURCE_DIR}/.cache/zoo/espcn.onnx)
  set_tests_properties(fuzz.models fuzz.models_that_failed conformance.beside_onnxruntime conformance.pairs conformance.optimised_models
                       PROPERTIES COST 20 SKIP_RETURN_CODE 77 TIMEOUT 400)
endif()
