#pragma once

#include "tools/options/tool_command.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace ringmaster::test {

/// What a command has returned and written.
struct outcome {
  int code = 0;
  std::string out;
  std::string err;
};

/// Runs `command(out, err)` with streams into memory.
template <class Command>
outcome captured(Command command) {
  outcome result;
  char* texts[2] = {};
  size_t sizes[2] = {};
  auto* out = ::open_memstream(&texts[0], &sizes[0]);
  auto* err = ::open_memstream(&texts[1], &sizes[1]);
  result.code = command(out, err);
  std::fclose(out);
  std::fclose(err);
  result.out = {texts[0], sizes[0]};
  result.err = {texts[1], sizes[1]};
  std::free(texts[0]);
  std::free(texts[1]);
  return result;
}

/// Runs a command with these arguments after its name.
inline outcome run_command(const tool_command& which, const std::vector<std::string>& args) {
  return captured([&](auto out, auto err) { return which.run(args, out, err); });
}

} // namespace ringmaster::test
