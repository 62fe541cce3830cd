// The file that says where a gateway listens and which dialects clients speak there.
#include "gateway/dialects/listener_file.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace ringmaster::fuzz {

namespace {

void read_listeners(std::string_view bytes) {
  (void)gateway::parse_listeners(bytes);
  (void)gateway::parse_listening_address(bytes);
}

const fuzz_target fuzz_gateway_listeners{"gateway_listeners", read_listeners};

} // namespace

} // namespace ringmaster::fuzz
