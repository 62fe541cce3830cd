// `ringmaster demo` as a program of its own: the first thing that is built and seen.
#include "tools/options/commands.hpp"

#include <string>
#include <vector>

int main(int argc, char** argv) {
  return ringmaster::demo_command().run(std::vector<std::string>{argv + 1, argv + argc});
}
