// Every input of the corpora, whole, cut short and with other bytes: those that once found a fault are among them.
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/support/file_content.hpp"

#include <doctest/doctest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>

using namespace ringmaster;
using namespace ringmaster::fuzz;

namespace {

/// No line in the log for what is wrong with an input.
class quiet_log {
public:
  quiet_log() { spdlog::set_level(spdlog::level::off); }
  ~quiet_log() { spdlog::set_level(level_); }

private:
  spdlog::level::level_enum level_ = spdlog::get_level();
};

std::vector<std::filesystem::path> corpus_of(const fuzz_target& target) {
  std::vector<std::filesystem::path> result;
  const auto folder = std::filesystem::path{RINGMASTER_SOURCE_DIR} / "tests/fuzz/corpus" / target.name;
  for (const auto& entry : std::filesystem::directory_iterator{folder})
    result.push_back(entry.path());
  std::ranges::sort(result);
  return result;
}

/// The input, the starts of it, and the input with some bytes changed: each time the same.
template <class Run>
void run_variants(const std::string& input, Run run) {
  constexpr size_t cuts = 8, changes = 8;
  run(input);
  for (size_t i = 0; i < cuts; ++i)
    run(input.substr(0, input.size() * i / cuts));
  std::minstd_rand random{static_cast<unsigned>(input.size() + 1)};
  for (size_t i = 0; i < changes && !input.empty(); ++i) {
    auto changed = input;
    for (size_t bytes = 0; bytes <= i; ++bytes)
      changed[random() % changed.size()] ^= static_cast<char>(1u << random() % 8);
    run(changed);
  }
}

} // namespace

TEST_CASE("corpora: each target takes every input of its corpus, whole, cut short and with other bytes") {
  const quiet_log log;
  for (const auto* target : fuzz_target::all()) {
    CAPTURE(target->name);
    const auto files = corpus_of(*target);
    CHECK_FALSE(files.empty());
    for (const auto& file : files) {
      CAPTURE(file);
      run_variants(test::content_of(file), [&](const std::string& input) { CHECK_NOTHROW(target->run(input)); });
    }
  }
}
