// A configuration file, as every program reads it.
#include "actors/configuration/configuration.hpp"
#include "actors/configuration/settings.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace ringmaster::fuzz {

namespace {

void read_configuration(std::string_view bytes) {
  const memory_file file{bytes};
  configuration settings;
  if (settings.read(std::vector<std::string>{}, file.path()))
    return;
  (void)settings.trust();
  (void)settings.origin_of("coordinator");
  (void)coordinator_settings(settings.values());
  (void)node_settings(settings.values(), "memory");
}

const fuzz_target fuzz_configuration{"configuration", read_configuration};

} // namespace

} // namespace ringmaster::fuzz
