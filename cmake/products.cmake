# SPDX-License-Identifier: Apache-2.0
# The libraries and programs a user sees.

# The runtime library stays below 620 KB: what is not hot is compiled for size, and what nothing calls is dropped.
foreach(room base runtime rpc)
  if(TARGET tw_${room})
    target_compile_options(tw_${room} PRIVATE -ffunction-sections -fdata-sections)
  endif()
endforeach()
# The hot files are compiled for speed, one by one; the others together.
set(tw_hot_sources src/runtime/executor_run.cc src/runtime/thread_team.cc src/base/hash.cc src/base/small_float.cc src/runtime/vm/machine.cc
    src/runtime/vm/host_select.cc src/runtime/vm/host_tensors.cc)
# The machine of byte code: its instructions neither throw nor let through what others throw.
set(tw_byte_code_options -fno-exceptions -fno-asynchronous-unwind-tables -fno-unwind-tables)
set(tw_byte_code_sources src/runtime/stackvm/arithmetic.cc src/runtime/stackvm/memory.cc src/runtime/stackvm/conversions.cc
    src/runtime/stackvm/integers.cc src/runtime/stackvm/math.cc)
list(TRANSFORM tw_hot_sources PREPEND ${CMAKE_SOURCE_DIR}/)
list(TRANSFORM tw_byte_code_sources PREPEND ${CMAKE_SOURCE_DIR}/)
set_source_files_properties(${tw_hot_sources} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2>")
set_source_files_properties(${tw_byte_code_sources} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:${tw_byte_code_options}>")
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/runtime/stackvm/memory.cc PROPERTIES COMPILE_OPTIONS
                            "$<$<CONFIG:Release>:${tw_byte_code_options};-O2>")
foreach(room base runtime)
  target_compile_options(tw_${room} PRIVATE "$<$<CONFIG:Release>:-Os>")
endforeach()

if(TARGET tw_runtime)
  # Its programs measure machines, the library does not.
  add_library(tilewright_runtime SHARED $<TARGET_OBJECTS:tw_base>
              $<FILTER:$<TARGET_OBJECTS:tw_runtime>,EXCLUDE,/machine_peak>)
  target_include_directories(tilewright_runtime PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:include>)
  target_link_libraries(tilewright_runtime PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  target_link_options(tilewright_runtime PRIVATE -Wl,--gc-sections -static-libstdc++ -static-libgcc -s
                      -Wl,--exclude-libs,ALL -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/runtime.map)
  if(TILEWRIGHT_MOLD)  # functions of the same code are one; nothing compares their addresses
    target_link_options(tilewright_runtime PRIVATE -Wl,--icf=all)
  endif()
  set_target_properties(tilewright_runtime PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                        LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/runtime.map)
endif()

# Sessions with other machines: the small program, which needs no compiler, and the client's functions, which whoever wants
# sessions loads (decision 021).
if(TARGET tw_rpc)
  target_link_libraries(tw_rpc PRIVATE OpenSSL::SSL OpenSSL::Crypto)
  add_executable(tilewright_rpc ${CMAKE_SOURCE_DIR}/src/rpc/rpc_main.cc)
  target_link_libraries(tilewright_rpc PRIVATE -Wl,--whole-archive $<TARGET_FILE:tw_runtime> -Wl,--no-whole-archive tw_rpc)
  target_link_options(tilewright_rpc PRIVATE "-Wl,--export-dynamic-symbol=tw_*" -Wl,--gc-sections -static-libstdc++
                      -static-libgcc -s)
  set_target_properties(tilewright_rpc PROPERTIES OUTPUT_NAME tilewright-rpc)
  add_dependencies(tilewright_rpc tw_runtime)
  add_library(tilewright_rpc_client SHARED ${CMAKE_SOURCE_DIR}/src/rpc/plugin_main.cc $<TARGET_OBJECTS:tw_rpc>
              $<TARGET_OBJECTS:tw_base>)
  target_include_directories(tilewright_rpc_client PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(tilewright_rpc_client PRIVATE tilewright_runtime OpenSSL::SSL OpenSSL::Crypto Threads::Threads)
  target_link_options(tilewright_rpc_client PRIVATE -Wl,--gc-sections -static-libstdc++ -static-libgcc -s
                      -Wl,--exclude-libs,ALL -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/runtime.map)
  set_target_properties(tilewright_rpc_client PROPERTIES BUILD_RPATH "$ORIGIN" BUILD_RPATH_USE_ORIGIN ON INSTALL_RPATH "$ORIGIN"
                        LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/runtime.map)
endif()

if(TARGET tw_cli)
  # Debian has zlib for its own architectures only; without, compressed entries of archives are refused by name.
  find_package(ZLIB)
  if(ZLIB_FOUND)
    target_link_libraries(tw_archive PUBLIC ZLIB::ZLIB)
    target_compile_definitions(tw_archive PRIVATE TW_ZLIB)
  elseif(NOT CMAKE_CROSSCOMPILING)
    message(FATAL_ERROR "zlib is not here (Debian's zlib1g-dev); ./dev setup installs it")
  endif()
  if(TILEWRIGHT_SANITIZE MATCHES "undefined")  # stb_image's digits and coefficients wrap
    set_source_files_properties(src/inputs/picture.cc PROPERTIES COMPILE_OPTIONS -fno-sanitize=undefined)
  endif()
  add_executable(tilewright ${CMAKE_SOURCE_DIR}/src/cli/tilewright_main.cc)
  # The C interface whole, and seen by plug-ins: what they register must reach the runtime that is in the program.
  target_link_libraries(tilewright PRIVATE -Wl,--whole-archive $<TARGET_FILE:tw_runtime> -Wl,--no-whole-archive tw_cli)
  target_link_options(tilewright PRIVATE "-Wl,--export-dynamic-symbol=tw_*")
  add_dependencies(tilewright tw_runtime)
endif()

if(TILEWRIGHT_COMPILER)
  # The compiler as one library; the command line loads it for the verbs that need it.
  add_library(tilewright_compiler SHARED $<TARGET_OBJECTS:tw_driver> $<TARGET_OBJECTS:tw_interpret>)
  target_include_directories(tilewright_compiler PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:include>)
  target_link_libraries(tilewright_compiler PRIVATE tw_lower tw_codegen tw_tune tw_frontend tw_program tw_runtime tw_inputs)
  target_link_options(tilewright_compiler PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/compiler.map)
endif()
if(TARGET tw_interpret)
  # VM programs without the compiler (decision 036): their machine, and the interpreter for what has no kernels.
  add_library(tilewright_vm SHARED $<TARGET_OBJECTS:tw_interpret>)
  target_include_directories(tilewright_vm PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:include>)
  target_link_libraries(tilewright_vm PRIVATE tw_frontend tw_program tw_runtime)
  target_link_options(tilewright_vm PRIVATE -Wl,--gc-sections -static-libstdc++ -static-libgcc -s -Wl,--exclude-libs,ALL
                      -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/compiler.map)
endif()

# Decoders of pictures: a library of its own, opened when a program decodes its first picture, each format where its
# library is (decision 029).
function(tw_picture_format define library packages header)
  find_path(TW_${define}_INCLUDE ${header} PATH_SUFFIXES openjpeg-2.5 openjpeg-2.4)
  find_library(TW_${define}_LIBRARY ${library})
  if(TW_${define}_INCLUDE AND TW_${define}_LIBRARY)
    target_include_directories(tw_pictures SYSTEM PRIVATE ${TW_${define}_INCLUDE})
    target_compile_definitions(tw_pictures PRIVATE TW_${define})
    target_link_libraries(tw_pictures PUBLIC ${TW_${define}_LIBRARY})
  else()
    message(STATUS "${library} is not here (Debian's ${packages}): programs do not decode its pictures")
  endif()
endfunction()
tw_picture_format(JPEG jpeg libjpeg-dev jpeglib.h)
tw_picture_format(PNG png libpng-dev png.h)
tw_picture_format(WEBP webp libwebp-dev webp/decode.h)
tw_picture_format(TIFF tiff libtiff-dev tiffio.h)
tw_picture_format(OPENJPEG openjp2 libopenjp2-7-dev openjpeg.h)
add_library(tilewright_pictures MODULE ${CMAKE_SOURCE_DIR}/src/pictures/plugin_main.cc)
target_link_libraries(tilewright_pictures PRIVATE tw_pictures)
target_link_options(tilewright_pictures PRIVATE -Wl,--gc-sections -static-libstdc++ -static-libgcc -s -Wl,--exclude-libs,ALL)

# Other people's kernels, each a plug-in of its own, opened when asked for: built where their library is (decision 022).
find_path(TILEWRIGHT_DNNL_INCLUDE oneapi/dnnl/dnnl_version.h)
find_library(TILEWRIGHT_DNNL_LIBRARY dnnl)
set(tw_dnnl_version "")
if(TILEWRIGHT_DNNL_INCLUDE AND TILEWRIGHT_DNNL_LIBRARY)
  file(STRINGS ${TILEWRIGHT_DNNL_INCLUDE}/oneapi/dnnl/dnnl_version.h tw_dnnl_version REGEX "define DNNL_VERSION_MAJOR +[23]$")
endif()
# tw_kernel_plugin(<name> <library> <include folder>): libtilewright_<name>.so of src/plugins/<name>_plugin.cc, and
# tw_<name>_plugin, what its code needs in a fuzz target.
function(tw_kernel_plugin name library include)
  add_library(tilewright_${name} MODULE ${CMAKE_SOURCE_DIR}/src/plugins/${name}_plugin.cc)
  target_include_directories(tilewright_${name} SYSTEM PRIVATE ${include})
  target_include_directories(tilewright_${name} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(tilewright_${name} PRIVATE tilewright_runtime ${library})
  tw_plain_code(tilewright_${name})
  set_target_properties(tilewright_${name} PROPERTIES BUILD_RPATH "$ORIGIN" BUILD_RPATH_USE_ORIGIN ON)
  add_library(tw_${name}_plugin INTERFACE)
  target_include_directories(tw_${name}_plugin SYSTEM INTERFACE ${include})
  target_link_libraries(tw_${name}_plugin INTERFACE tw_runtime ${library})
endfunction()
if(TARGET tilewright_runtime AND tw_dnnl_version)
  tw_kernel_plugin(dnnl ${TILEWRIGHT_DNNL_LIBRARY} ${TILEWRIGHT_DNNL_INCLUDE})
  # The calls of oneDNN that generated C begins with, as text.
  file(READ ${CMAKE_SOURCE_DIR}/src/plugins/dnnl_calls.h tw_dnnl_calls)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/dnnl_calls/plugins/dnnl_calls_text.h @ONLY CONTENT
       "#pragma once\ninline constexpr char kCallsText[] = R\"calls(@tw_dnnl_calls@)calls\";\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/plugins/dnnl_calls.h)
  target_include_directories(tilewright_dnnl PRIVATE ${CMAKE_BINARY_DIR}/dnnl_calls)
  target_include_directories(tw_dnnl_plugin INTERFACE ${CMAKE_BINARY_DIR}/dnnl_calls)
else()
  message(STATUS "oneDNN 2 or 3 is not here (Debian's libdnnl-dev): relay.op.contrib.dnnl partitions, and its parts are not compiled")
endif()
find_path(TILEWRIGHT_CBLAS_INCLUDE cblas.h)
find_library(TILEWRIGHT_CBLAS_LIBRARY blas)
if(TARGET tilewright_runtime AND TILEWRIGHT_CBLAS_INCLUDE AND TILEWRIGHT_CBLAS_LIBRARY)
  tw_kernel_plugin(cblas ${TILEWRIGHT_CBLAS_LIBRARY} ${TILEWRIGHT_CBLAS_INCLUDE})
else()
  message(STATUS "no BLAS is here (Debian's libopenblas-dev or libblas-dev): relay.op.contrib.cblas partitions, and its parts are not compiled")
endif()
