# What `cmake --install` puts where, and the CMake package that finds it again. A prefix may be moved as a whole. Two
# components: `programs`, and `development` for headers, libraries and examples.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(ringmaster_series "ringmaster-${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
set(ringmaster_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/ringmaster")
set(ringmaster_data_dir "${CMAKE_INSTALL_DATADIR}/ringmaster")

# The public headers, and the static libraries that a program links through ringmaster::ringmaster.
target_include_directories(ringmaster_ringmaster INTERFACE
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/${ringmaster_series}>")
set(ringmaster_libraries)
set(libraries_to_see ringmaster_ringmaster)
while(libraries_to_see)
  list(POP_FRONT libraries_to_see library)
  string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" library "${library}")
  if(library MATCHES "^ringmaster_(.*)$" AND NOT library IN_LIST ringmaster_libraries)
    set_target_properties(${library} PROPERTIES EXPORT_NAME ${CMAKE_MATCH_1})
    add_library(ringmaster::${CMAKE_MATCH_1} ALIAS ${library})
    list(APPEND ringmaster_libraries ${library})
    get_target_property(linked ${library} INTERFACE_LINK_LIBRARIES)
    if(linked)
      list(APPEND libraries_to_see ${linked})
    endif()
  endif()
endwhile()
install(TARGETS ${ringmaster_libraries} EXPORT ringmaster
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
if(NOT RINGMASTER_LIBTORCH)
  set(without_libtorch PATTERN module.hpp EXCLUDE)
endif()
install(DIRECTORY include/ringmaster DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/${ringmaster_series}"
  COMPONENT development FILES_MATCHING ${without_libtorch} PATTERN "*.hpp")

install(EXPORT ringmaster NAMESPACE ringmaster:: FILE ringmaster-targets.cmake
  DESTINATION "${ringmaster_package_dir}" COMPONENT development)
configure_package_config_file(cmake/ringmaster-config.cmake.in ringmaster-config.cmake
  INSTALL_DESTINATION "${ringmaster_package_dir}")
write_basic_package_version_file(ringmaster-config-version.cmake COMPATIBILITY SameMinorVersion)
install(
  FILES
    cmake/FindCAF.cmake
    "${PROJECT_BINARY_DIR}/ringmaster-config.cmake"
    "${PROJECT_BINARY_DIR}/ringmaster-config-version.cmake"
  DESTINATION "${ringmaster_package_dir}" COMPONENT development)
# A separate export: the package defines it where libtorch is found.
if(RINGMASTER_LIBTORCH)
  set_target_properties(ringmaster_module PROPERTIES EXPORT_NAME libtorch)
  set_target_properties(ringmaster_libtorch PROPERTIES EXPORT_NAME libtorch_layers)
  add_library(ringmaster::libtorch ALIAS ringmaster_module)
  install(TARGETS ringmaster_module ringmaster_libtorch EXPORT ringmaster-libtorch
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
  install(EXPORT ringmaster-libtorch NAMESPACE ringmaster:: FILE ringmaster-libtorch-targets.cmake
    DESTINATION "${ringmaster_package_dir}" COMPONENT development)
  install(FILES cmake/FindLibtorch.cmake DESTINATION "${ringmaster_package_dir}" COMPONENT development)
endif()
install(DIRECTORY examples DESTINATION "${ringmaster_data_dir}" COMPONENT development PATTERN puzzles EXCLUDE)

install(TARGETS ringmaster caf-run RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT programs)
install(DIRECTORY bench/data/ DESTINATION "${ringmaster_data_dir}" COMPONENT programs)
# Units are not enabled by the installation. systemd looks for both below /usr/lib.
install(FILES deploy/systemd/ringmaster-coordinator.service "deploy/systemd/ringmaster-node@.service"
  DESTINATION lib/systemd/system COMPONENT programs)
if(RINGMASTER_GATEWAY) # a package of its own: it needs gRPC
  if(RINGMASTER_ETCD) # it needs gRPC as well
    install(TARGETS ringmaster-coordinator RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT gateway)
  endif()
  install(TARGETS ringmaster-gateway RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT gateway)
  install(FILES deploy/systemd/ringmaster-gateway.service DESTINATION lib/systemd/system COMPONENT gateway)
  install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/ringmaster-gateway" RENAME copyright
    COMPONENT gateway)
endif()
install(FILES deploy/systemd/ringmaster.sysusers DESTINATION lib/sysusers.d RENAME ringmaster.conf COMPONENT programs)
install(FILES CHANGELOG.md LICENSE README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT programs)
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT programs)
# Debian wants the licence of each package here.
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/ringmaster" RENAME copyright COMPONENT programs)
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/ringmaster-dev" RENAME copyright COMPONENT development)
# Programs look for the configuration beside themselves and then in /etc, where an installation in /usr has it. An
# existing file is kept: the user or `ringmaster tune` may have changed it.
install(CODE "set(ringmaster_configuration \"${PROJECT_SOURCE_DIR}/config/caf-application.conf\")" COMPONENT programs)
install(CODE [[
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(ringmaster_etc /etc/ringmaster)
  else()
    set(ringmaster_etc "${CMAKE_INSTALL_PREFIX}/etc/ringmaster")
  endif()
  if(EXISTS "$ENV{DESTDIR}${ringmaster_etc}/caf-application.conf")
    message(STATUS "Keeping: $ENV{DESTDIR}${ringmaster_etc}/caf-application.conf")
  else()
    file(INSTALL "${ringmaster_configuration}" DESTINATION "${ringmaster_etc}")
  endif()]]
  COMPONENT programs)

# Man pages and completion are made when a program is built: the installation writes nothing into the build tree.
# "## 0.2.0 - 2026-11-22"
file(STRINGS CHANGELOG.md ringmaster_date LIMIT_COUNT 1 REGEX "^## ${PROJECT_VERSION} - ")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS CHANGELOG.md)
string(REGEX REPLACE "^.* - " "" ringmaster_date "${ringmaster_date}")
find_program(HELP2MAN help2man)
if(NOT HELP2MAN)
  message(STATUS "help2man is not installed: there are no man pages")
endif()
function(install_texts program completion summary see_also)
  set(texts "${PROJECT_BINARY_DIR}/texts")
  file(MAKE_DIRECTORY "${texts}")
  separate_arguments(completion)
  add_custom_command(OUTPUT "${texts}/${program}" COMMAND ${program} ${completion} > "${texts}/${program}"
    DEPENDS ${program} VERBATIM)
  set(made "${texts}/${program}")
  install(FILES "${texts}/${program}" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT programs)
  if(HELP2MAN)
    add_custom_command(OUTPUT "${texts}/${program}.1.made"
      COMMAND "${PROJECT_SOURCE_DIR}/cmake/man_pages" "$<TARGET_FILE:${program}>" "${texts}/${program}.man"
        "${summary}" ${see_also} "${ringmaster_date}"
      COMMAND "${CMAKE_COMMAND}" -E touch "${texts}/${program}.1.made"
      DEPENDS ${program} cmake/man_pages VERBATIM)
    list(APPEND made "${texts}/${program}.1.made")
    install(DIRECTORY "${texts}/${program}.man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT programs)
  endif()
  add_custom_target(${program}-texts ALL DEPENDS ${made})
endfunction()
install_texts(ringmaster "completion bash" "collective communication and training on simulated devices" caf-run)
install_texts(caf-run "--completion" "starts a cluster and runs a program against it" ringmaster)
