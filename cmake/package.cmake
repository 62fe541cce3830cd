# The Debian packages that `./run package` makes: `ringmaster` has the programs, `ringmaster-gateway` the gateway, and
# `ringmaster-dev` what compiles and links against the libraries, with the packages that this takes.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ringmaster)
set(CPACK_PACKAGE_VENDOR "The Ringmaster authors")
set(CPACK_PACKAGE_CONTACT "The Ringmaster authors")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
# The configuration goes to /etc, outside of the prefix.
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)
set(CPACK_COMPONENTS_ALL programs development)
if(RINGMASTER_GATEWAY)
  list(APPEND CPACK_COMPONENTS_ALL gateway)
endif()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME ringmaster)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_RECOMMENDS openssh-client) # caf-run --hostfile
set(CPACK_DEBIAN_PROGRAMS_DESCRIPTION "runtime and laboratory for collective communication and distributed training
Simulated GPUs, streams and communicators as actors, in one process or in many: collectives that outlive a device that
dies, and schedules and training strategies that can be proved, simulated and drawn.")
file(WRITE "${PROJECT_BINARY_DIR}/package/conffiles" "/etc/ringmaster/caf-application.conf\n")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/package/conffiles"
  "${PROJECT_SOURCE_DIR}/deploy/systemd/postinst")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_GATEWAY_PACKAGE_NAME ringmaster-gateway)
set(CPACK_DEBIAN_GATEWAY_PACKAGE_SECTION science)
set(CPACK_DEBIAN_GATEWAY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_GATEWAY_PACKAGE_DEPENDS ringmaster)
set(CPACK_DEBIAN_GATEWAY_DESCRIPTION "gRPC, metrics and a live page for a Ringmaster cluster
Serves clients in any language, Prometheus and browsers, as a client of the cluster in a process of its own.")

# The generated headers that are installed want the series of protobuf that has made them.
string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" protobuf_series "${Protobuf_VERSION}")
set(protobuf_major ${CMAKE_MATCH_1})
math(EXPR protobuf_next_minor "${CMAKE_MATCH_2} + 1")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME ringmaster-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libcaf-dev (>= 0.17.6), libcaf-dev (<< 0.18), libfmt-dev, \
libprotobuf-dev (>= ${protobuf_series}), libprotobuf-dev (<< ${protobuf_major}.${protobuf_next_minor}), \
librocksdb-dev, libspdlog-dev, libssl-dev, nlohmann-json3-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "cmake (>= 3.22), g++ (>= 4:12), ringmaster")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "headers and libraries to build programs against Ringmaster
Static libraries, headers, examples, and a CMake package: find_package(ringmaster), ringmaster::client.")
include(CPack)
