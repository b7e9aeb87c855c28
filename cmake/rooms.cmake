# SPDX-License-Identifier: Apache-2.0
# tw_room(NAME [DEPENDS rooms...]): an object library of every .cc below src/NAME. Folders are globbed, so a new
# file needs no edit here. Files that belong to a program rather than to the room are named *_main.cc.
function(tw_room name)
  cmake_parse_arguments(ROOM "" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_main\\.cc$")
  add_library(tw_${name} STATIC ${sources})
  set_target_properties(tw_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(tw_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  foreach(dep ${ROOM_DEPENDS})
    target_link_libraries(tw_${name} PUBLIC tw_${dep})
  endforeach()
  target_link_libraries(tw_${name} PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
endfunction()
