# SPDX-License-Identifier: Apache-2.0
# Installation: the program, the libraries, the headers, and what find_package(Tilewright) needs. The runtime is a component of
# its own: cmake --install build --component runtime
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(tw_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tilewright)

if(TARGET tilewright_runtime)
  set_target_properties(tilewright_runtime PROPERTIES EXPORT_NAME runtime)
  install(TARGETS tilewright_runtime EXPORT TilewrightRuntime LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
  install(EXPORT TilewrightRuntime NAMESPACE tilewright:: DESTINATION ${tw_package_dir} COMPONENT runtime)
  install(FILES include/tilewright/c_api.h include/tilewright/dlpack.h include/tilewright/function.h
                include/tilewright/runtime.h include/tilewright/standalone.h
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tilewright COMPONENT runtime)
  configure_package_config_file(cmake/TilewrightConfig.cmake.in ${CMAKE_BINARY_DIR}/TilewrightConfig.cmake
                                INSTALL_DESTINATION ${tw_package_dir})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/TilewrightConfigVersion.cmake COMPATIBILITY SameMajorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/TilewrightConfig.cmake ${CMAKE_BINARY_DIR}/TilewrightConfigVersion.cmake
          DESTINATION ${tw_package_dir} COMPONENT runtime)
endif()
if(TARGET tilewright_rpc)
  install(TARGETS tilewright_rpc RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  install(TARGETS tilewright_rpc_client LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT tools)
endif()
install(TARGETS tilewright_pictures LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
if(TARGET tilewright)
  install(TARGETS tilewright RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
endif()
if(TARGET tilewright_compiler)
  set_target_properties(tilewright_compiler PROPERTIES EXPORT_NAME compiler)
  install(TARGETS tilewright_compiler EXPORT TilewrightCompiler LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT compiler)
  install(EXPORT TilewrightCompiler NAMESPACE tilewright:: DESTINATION ${tw_package_dir} COMPONENT compiler)
  # VM programs: the library by itself, and the headers that the compiler's users read as well.
  set_target_properties(tilewright_vm PROPERTIES EXPORT_NAME vm)
  install(TARGETS tilewright_vm EXPORT TilewrightVm LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT vm)
  install(EXPORT TilewrightVm NAMESPACE tilewright:: DESTINATION ${tw_package_dir} COMPONENT vm)
  foreach(component compiler vm)
    install(FILES include/tilewright/compiler.h include/tilewright/text_tensor.h include/tilewright/vm.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tilewright COMPONENT ${component})
  endforeach()
endif()
