// `ringmaster demo` as a program of its own: the first thing that is built and seen.
#include "tools/demo/demo_command.hpp"

int main(int argc, char** argv) {
  return ringmaster::demo_command({argv + 1, argv + argc});
}
