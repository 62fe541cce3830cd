// A client of a cluster that serves clients in other languages. See docs/GATEWAY.md.
#include "gateway/gateway_command.hpp"

#include <string>
#include <vector>

int main(int argc, char** argv) {
  return ringmaster::gateway::gateway_command().run(std::vector<std::string>{argv + 1, argv + argc});
}
