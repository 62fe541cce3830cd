// Which operations a journal knows when it keeps only its latest records.
#include "runtime/journal/journal_store.hpp"
#include "runtime/journal/record_filter.hpp"
#include "tests/support/journal_directory.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// Records of several operations at a time, each operation's in their order, and some of no operation.
class interleaved_history {
public:
  explicit interleaved_history(uint64_t seed) : random_(seed) {}

  std::vector<proto::Record> next(size_t count) {
    std::vector<proto::Record> result;
    while (result.size() < count)
      result.push_back(next());
    return result;
  }

  size_t below(size_t limit) { return random_() % limit; }

private:
  static constexpr size_t open_max = 12;

  proto::Record next() {
    if (below(10) == 0)
      return device_died(3, "killed");
    auto i = below(open_max);
    auto& left = open_[i];
    if (left.empty())
      left = whole_operation(1 + i % 2, ++sequence_);
    auto record = left.front();
    left.erase(left.begin());
    return record;
  }

  std::mt19937_64 random_;
  uint64_t sequence_ = 0;
  std::array<std::vector<proto::Record>, open_max> open_;
};

/// What the journal must know of operations: of those that have a record among the ones it keeps, their latest.
std::map<operation_key, uint64_t> last_records(const std::vector<proto::Record>& history, uint64_t first) {
  std::map<operation_key, uint64_t> result;
  for (auto index = first; index <= history.size(); ++index)
    if (auto key = operation_of(history[index - 1]))
      result[*key] = index;
  return result;
}

} // namespace

TEST_CASE("journal retention: an operation stays as long as one of its records, for any interleaving") {
  constexpr uint64_t retained = 24;
  for (uint64_t seed = 1; seed <= 8; ++seed)
    for (bool on_disk : {true, false}) {
      CAPTURE(seed);
      CAPTURE(on_disk);
      temporary_directory dir;
      journal_store::options opts;
      opts.dir = on_disk ? dir.path() : std::filesystem::path{};
      opts.sync = journal_sync::never;
      opts.retain_records = retained;
      auto journal = journal_store::open(opts);
      REQUIRE_MESSAGE(journal, render(journal.error()));
      interleaved_history source{seed};
      std::vector<proto::Record> history;
      for (int batch = 0; batch < 60; ++batch) {
        auto records = source.next(1 + source.below(40)); // at times more than it keeps
        history.insert(history.end(), records.begin(), records.end());
        REQUIRE(!(*journal)->append(records));
        auto expected = last_records(history, (*journal)->state().first_index());
        auto known = (*journal)->operations();
        REQUIRE(known);
        std::map<operation_key, uint64_t> found;
        for (auto& x : *known) {
          operation_key key{communicator_id{x.comm_id()}, sequence_number{x.sequence()}};
          found[key] = x.last_index();
          const bool ended = x.last_index() > 0 && history[x.last_index() - 1].has_operation_ended();
          CHECK(x.status() == (ended ? gpu_sim::SUCCESS : gpu_sim::IN_PROGRESS));
        }
        REQUIRE(found == expected);
      }
    }
}
