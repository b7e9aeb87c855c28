# SPDX-License-Identifier: Apache-2.0
# tw_room(NAME [DEPENDS rooms...]): an object library of every .cc below src/NAME. Folders are globbed, so a new
# file needs no edit here. Files that belong to a program rather than to the room are named *_main.cc.
# Rooms are compiled at -Og with little inlined: they walk graphs, texts and loops, where more buys little that a user sees
# and costs half of the time to compile them. All but base and runtime, whose code runs where models do, and the files whose
# loops go through the elements of weights.
set(tw_plain_options $<$<CONFIG:Release>:-Og> --param=max-inline-insns-single=4 --param=early-inlining-insns=0)
set(tw_element_sources src/relay/constant_call.cc src/relay/ops/reference.cc src/topi/pack.cc src/topi/words.cc
    src/topi/winograd_weights.cc src/tir/interpret.cc src/tir/interpreter_code.cc)
set(tw_element_options $<$<CONFIG:Release>:-O2> --param=max-inline-insns-single=70 --param=early-inlining-insns=6)
# Five of UndefinedBehaviorSanitizer's checks look at every access; they make two thirds of what it takes to compile. They
# are for base and runtime, which read bytes of files; elsewhere AddressSanitizer sees null pointers and overruns. And
# LLVM has no run-time type information, which `vptr` reads.
set(tw_light_sanitizers)
if(TILEWRIGHT_SANITIZE MATCHES "undefined")
  set(tw_light_sanitizers -fno-sanitize=null,alignment,vptr,object-size,pointer-overflow)
endif()
list(APPEND tw_plain_options ${tw_light_sanitizers})
# The standard library's headers cost each file half a second: they are compiled once for those rooms. A file includes what
# it uses all the same.
add_library(tw_standard_headers STATIC EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/no_code.cc)
target_compile_options(tw_standard_headers PRIVATE ${tw_plain_options})
target_precompile_headers(tw_standard_headers PRIVATE <algorithm> <array> <charconv> <chrono> <cmath> <cstring> <filesystem>
                          <fstream> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream>
                          <string> <thread> <unordered_map> <unordered_set> <variant> <vector>)
function(tw_plain_code target)
  target_compile_options(${target} PRIVATE ${tw_plain_options})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")  # the headers were compiled for libraries
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${target} REUSE_FROM tw_standard_headers)
endfunction()
# Up to 24 files of a room are compiled as one, which costs a quarter of compiling each by itself: names of a room are
# unique, those in anonymous namespaces too. OFF where one file's own diagnostics are wanted.
option(TILEWRIGHT_UNITY "Compile several files of a room together" ON)
# fmt reads its texts while it compiles each call, which costs a twentieth of the time to compile; it is on where files are
# compiled one by one, as ./dev tidy does, and with sanitizers.
if(TILEWRIGHT_UNITY AND NOT TILEWRIGHT_SANITIZE)
  add_compile_definitions("FMT_CONSTEVAL=")
endif()
# Files whose names stand for other things elsewhere in their room: `using namespace tir` beside relay, constants of
# one precision beside another's.
# fmt, which is configured where it is compiled. And a parser that recurses: inlining across files would make its frames larger than the depth it allows has room for.
# And the C interface, which the Python module takes from the shared runtime: together with anything else that it needs of the
# runtime's archive, the module would get an interface, and a table of functions, of its own.
set(tw_compiled_alone src/runtime/c_api.cc src/runtime/c_api_function.cc src/runtime/function.cc src/base/format.cc src/tir/parse.cc src/tir/parse_expr.cc src/lower/compute.cc src/lower/compute_elementwise.cc src/lower/compute_transform.cc
    src/codegen/llvm/math.cc src/codegen/llvm/math_double.cc src/codegen/llvm/math_inverse.cc)
list(TRANSFORM tw_compiled_alone PREPEND ${CMAKE_SOURCE_DIR}/)
set_source_files_properties(${tw_compiled_alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
list(TRANSFORM tw_element_sources PREPEND ${CMAKE_SOURCE_DIR}/)
set_source_files_properties(${tw_element_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON
                            COMPILE_OPTIONS "${tw_element_options}")
function(tw_room name)
  cmake_parse_arguments(ROOM "" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_main\\.cc$")
  if(name STREQUAL "codegen" AND TILEWRIGHT_LLVM)
    list(FILTER sources EXCLUDE REGEX "/without_llvm\\.cc$")
  elseif(name STREQUAL "codegen")
    list(FILTER sources EXCLUDE REGEX "/codegen/llvm/")
  endif()
  if(NOT sources)
    return()
  endif()
  set(together 24)
  if(name STREQUAL "driver")  # the last to be compiled: in parts that end together, CLI11's readers in one of them
    set(together 15)
    set(others ${sources})
    list(FILTER sources INCLUDE REGEX "/driver/cli/")
    list(REMOVE_ITEM others ${sources})
    list(APPEND sources ${others})
  endif()
  add_library(tw_${name} STATIC ${sources})
  set_target_properties(tw_${name} PROPERTIES LINKER_LANGUAGE CXX UNITY_BUILD ${TILEWRIGHT_UNITY} UNITY_BUILD_BATCH_SIZE ${together})
  # By folder: the macros of <elf.h> are names of LLVM's, and what has nothing of LLVM serves the compiler without it, too.
  if(name STREQUAL "codegen")
    set_target_properties(tw_codegen PROPERTIES UNITY_BUILD_MODE GROUP)
    foreach(source ${sources})
      string(REGEX MATCH "codegen/(llvm/emit_|llvm/|source/)?" group ${source})
      string(MAKE_C_IDENTIFIER ${group} group)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endforeach()
  endif()
  target_include_directories(tw_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  if(TILEWRIGHT_UNITY)  # a file that others include may have types of its own
    target_compile_options(tw_${name} PRIVATE -Wno-subobject-linkage)
  endif()
  if(NOT name MATCHES "^(base|runtime)$")
    tw_plain_code(tw_${name})
  endif()
  foreach(dep ${ROOM_DEPENDS})
    if(TARGET tw_${dep})
      target_link_libraries(tw_${name} PUBLIC tw_${dep})
    endif()
  endforeach()
  target_link_libraries(tw_${name} PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
endfunction()
