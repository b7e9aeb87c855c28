# SPDX-License-Identifier: Apache-2.0
# The libraries and programs a user sees.
if(TARGET tw_runtime)
add_library(tilewright_runtime SHARED $<TARGET_OBJECTS:tw_base> $<TARGET_OBJECTS:tw_runtime>)
target_include_directories(tilewright_runtime PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                           $<INSTALL_INTERFACE:include>)
target_link_libraries(tilewright_runtime PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(tilewright_runtime PRIVATE -Wl,--gc-sections -static-libstdc++ -static-libgcc -s)
endif()
