#include "runtime/health/verdict_log.hpp"

#include "tests/support/all_orders.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

proto::Verdict found_on(uint64_t device, uint64_t epoch) {
  proto::Verdict x;
  x.set_kind(proto::Verdict::CRASHED);
  x.set_epoch(epoch);
  x.add_culprits()->set_device_id(device);
  return x;
}

/// Faults, what is done about them, epochs and the end, in any order; a few of each.
struct log_world {
  enum class event { open, note, failed, spare, epoch, end };

  verdict_log log{communicator_id{7}};
  uint64_t epoch = 1;
  uint64_t found = 0, failures = 0, spares = 0;
  std::set<uint64_t> given; ///< Numbers of those that are complete.
  uint64_t open = 0;
  bool ended = false;

  std::vector<event> possible() const {
    std::vector<event> result;
    if (ended)
      return result;
    if (found < 3) {
      result.push_back(event::open);
      result.push_back(event::note);
    }
    if (failures < 2)
      result.push_back(event::failed);
    if (spares < 1)
      result.push_back(event::spare);
    if (epoch < 3)
      result.push_back(event::epoch);
    result.push_back(event::end);
    return result;
  }

  void complete(const std::vector<proto::Verdict>& all) {
    REQUIRE(all.size() == open);
    for (auto& x : all) {
      CHECK(given.insert(x.number()).second);
      CHECK(x.has_outcome());
    }
    open = 0;
  }

  void apply(event what) {
    switch (what) {
      case event::open:
        ++found;
        CHECK(log.open(found_on(found, epoch)).number() == found);
        ++open;
        break;
      case event::note:
        ++found;
        CHECK(log.note(found_on(found, epoch)).number() == found);
        CHECK(given.insert(found).second);
        break;
      case event::failed: log.note_failed({++failures}); break;
      case event::spare: log.note_spare({100 + ++spares}); break;
      case event::epoch: complete(log.close({++epoch}, 3, {{9}})); break;
      case event::end:
        complete(log.close_at_end());
        ended = true;
        break;
    }
  }

  void check_rest() const {
    CHECK(log.any_open() == (open > 0));
    CHECK(log.latest().size() == given.size());
    for (uint64_t device = 1; device <= found; ++device) {
      REQUIRE(log.about({device}) != nullptr);
      CHECK(log.about({device})->number() == device);
      CHECK(log.about({device})->comm_id() == 7);
    }
    CHECK(log.about({99}) == nullptr);
    CHECK((!ended || given.size() == found)); // each is given, whatever came in between
  }

  uint64_t fingerprint() const {
    uint64_t result = epoch + 8 * found + 64 * failures + 512 * spares + 4096 * open + (ended ? 1u << 20 : 0);
    for (auto number : given)
      result += uint64_t{1} << (24 + number);
    return result;
  }
};

} // namespace

TEST_CASE("verdict log: in every order each verdict is numbered and given once, with what was done") {
  CHECK(walk_all_orders(log_world{}) > 300);
}

TEST_CASE("verdict log: what is done counts for those that are open, and culprits are in rank order") {
  verdict_log log{communicator_id{7}};
  auto both = found_on(2, 1);
  both.mutable_culprits(0)->set_rank(1);
  both.add_culprits()->set_device_id(1);
  log.open(both);
  log.note_failed({4});
  log.note_spare({12});
  const auto given = log.close({2}, 3, {{5}, {6}});
  REQUIRE(given.size() == 1);
  CHECK(given[0].culprits(0).device_id() == 1);
  CHECK(given[0].culprits(1).device_id() == 2);
  auto& done = given[0].outcome();
  CHECK(done.epoch() == 2);
  CHECK(done.ranks() == 3);
  CHECK(done.rerun_size() == 2);
  CHECK(done.failed(0) == 4);
  CHECK(done.spares(0) == 12);
  CHECK_FALSE(done.ended());
  log.note_failed({7}); // of no failure that is known
  CHECK(log.close({3}, 3, {}).empty());
}

TEST_CASE("verdict log: only the latest are kept") {
  verdict_log log{communicator_id{7}};
  for (uint64_t device = 1; device <= verdict_log::kept_max + 4; ++device)
    log.note(found_on(device, 1));
  CHECK(log.latest().size() == verdict_log::kept_max);
  CHECK(log.latest().front().number() == 5);
  CHECK(log.about({4}) == nullptr);
  CHECK(log.about({5}) != nullptr);
}
