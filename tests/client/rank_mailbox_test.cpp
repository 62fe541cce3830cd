// Ranks that share a mailbox, all in this process: results of their calls, and which calls are sent as messages.
#include "client/rank_mailbox.hpp"
#include "messages/errc.hpp"
#include "runtime/coordination/shared_mailboxes.hpp"
#include "runtime/memory/device_memory.hpp"
#include "runtime/schedule/request_of.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <numeric>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t slot_bytes = 1024;
constexpr uint64_t rank_memory_bytes = 1u << 16;
constexpr communicator_id whole_world{7};

/// One rank: its device, its way to meet, and the calls that went by messages.
struct meeting_rank {
  std::shared_ptr<own_device> device = std::make_shared<own_device>();
  std::vector<std::pair<proto::RankCall, std::shared_ptr<work::state>>> messages;
  std::shared_ptr<rank_mailbox> meeting;
  std::vector<std::string> aborts;

  std::span<std::byte> at(uint64_t offset, uint64_t bytes) {
    return *device->memory->at(device->memory->min_address() + offset, bytes);
  }
  float* floats(uint64_t offset) { return reinterpret_cast<float*>(at(offset, sizeof(float)).data()); }
};

struct meeting_ranks {
  temporary_directory directory;
  shared_mailboxes pages{slot_bytes};
  std::vector<std::unique_ptr<meeting_rank>> all;

  explicit meeting_ranks(uint32_t count) {
    for (uint32_t rank = 0; rank < count; ++rank) {
      all.push_back(std::make_unique<meeting_rank>());
      auto id = device_id{rank + 1};
      auto memory = device_memory::open({id, memory_file(directory.path(), id), (rank + 1) * rank_memory_bytes,
                                         rank_memory_bytes});
      REQUIRE(memory);
      all[rank]->device->memory = *memory;
      join(rank, whole_world);
    }
  }

  void join(uint32_t rank, communicator_id communicator) {
    auto page = pages.page_of(communicator, epoch_number{1}, 2);
    REQUIRE(page);
    auto& x = *all[rank];
    auto otherwise = [&x](proto::RankCall call, std::shared_ptr<work::state> calls) {
      x.messages.emplace_back(std::move(call), std::move(calls));
    };
    auto joined = rank_mailbox::join(*page, {communicator, epoch_number{1}, rank, 2}, x.device, otherwise,
                                     [&x](std::string why) { x.aborts.push_back(std::move(why)); });
    REQUIRE(joined);
    x.meeting = *joined;
  }
};

proto::RankCall call_of(meeting_rank& x, proto::CollectiveKind kind, uint64_t count, bool in_place = false) {
  proto::RankCall result;
  result.set_comm_id(whole_world.value);
  result.set_epoch(1);
  auto& part = *result.add_parts();
  part.mutable_collective()->set_kind(kind);
  part.mutable_collective()->set_algorithm("auto");
  part.mutable_collective()->set_datatype(proto::FLOAT32);
  part.mutable_collective()->set_count(count);
  part.set_input(x.device->memory->min_address());
  part.set_output(in_place ? 0 : x.device->memory->min_address() + rank_memory_bytes / 2);
  part.set_in_place(in_place);
  return result;
}

work make(meeting_rank& x, proto::RankCall call) {
  auto calls = begin_work([] { return "a call"; });
  x.meeting->call(std::move(call), calls);
  return work{calls};
}

} // namespace

TEST_CASE("shared mailbox: every kind gives each rank what it means, out of place and in place") {
  for (auto kind : collective_kinds())
    for (bool places : {false, true}) {
      if (kind == proto::SEND_RECV)
        continue;
      CAPTURE(name_of(kind));
      CAPTURE(places);
      meeting_ranks ranks{2};
      constexpr uint64_t count = 6;
      auto value = [](uint32_t rank, uint64_t index) { return static_cast<float>(100 * (rank + 1) + index); };
      std::vector<work> works;
      for (uint32_t rank = 0; rank < 2; ++rank) {
        auto& x = *ranks.all[rank];
        auto call = call_of(x, kind, count, places);
        auto request = request_of(call.parts(0).collective(), 2, rank);
        auto first = places ? in_place(kind, request, rank).input : 0;
        for (uint64_t i = 0; i < input_count(kind, request, rank); ++i)
          x.floats(0)[first + i] = value(rank, i);
        works.push_back(make(x, call));
        CHECK(works.back().test() == (rank == 1));
      }
      for (uint32_t rank = 0; rank < 2; ++rank) {
        auto& x = *ranks.all[rank];
        REQUIRE(!works[rank].wait(1s));
        CHECK(works[rank].epoch() == epoch_number{1});
        CHECK(x.meeting->calls_met() == 1);
        auto request = request_of(call_of(x, kind, count).parts(0).collective(), 2, rank);
        auto* output = places ? x.floats(0) + in_place(kind, request, rank).output : x.floats(rank_memory_bytes / 2);
        for (uint64_t i = 0; i < output_count(kind, request, rank); ++i) {
          auto from = meaning_of(kind, request, rank, i);
          CHECK(output[i]
                == (from.all_ranks ? value(0, from.index) + value(1, from.index) : value(from.rank, from.index)));
        }
      }
    }
}

TEST_CASE("shared mailbox: calls that differ become messages on all ranks, with the rest of their limit") {
  meeting_ranks ranks{2};
  auto longer = call_of(*ranks.all[1], proto::ALL_REDUCE, 5);
  auto first = call_of(*ranks.all[0], proto::ALL_REDUCE, 4);
  first.set_timeout_ns(std::chrono::nanoseconds{10s}.count());
  auto one = make(*ranks.all[0], first);
  CHECK(ranks.all[0]->messages.empty());
  make(*ranks.all[1], longer);
  REQUIRE(ranks.all[1]->messages.size() == 1);
  CHECK(!one.test());
  REQUIRE(ranks.all[0]->messages.size() == 1);
  auto& sent = ranks.all[0]->messages.front();
  CHECK(sent.first.parts(0).collective().count() == 4);
  CHECK(sent.first.timeout_ns() > 0);
  CHECK(sent.first.timeout_ns() < first.timeout_ns());

  // Until these have finished, others are messages, too: calls stay in order.
  make(*ranks.all[0], call_of(*ranks.all[0], proto::ALL_REDUCE, 4));
  CHECK(ranks.all[0]->messages.size() == 2);
  CHECK(ranks.all[0]->device->messages_under_way == 2);
  for (auto& rank : ranks.all)
    for (auto& [call, calls] : rank->messages) {
      proto::RankCallResponse answer;
      answer.set_epoch(1);
      finish(*calls, answer, make_error(errc::invalid_argument, "they do not match"));
    }
  CHECK(one.error() == errc::invalid_argument);
  CHECK(ranks.all[0]->device->messages_under_way == 0);
  make(*ranks.all[1], call_of(*ranks.all[1], proto::ALL_REDUCE, 4)); // its second: rank 0 has passed it
  CHECK(ranks.all[1]->messages.size() == 2);
}

TEST_CASE(
  "shared mailbox: calls that differ in anything that all ranks must agree on become messages, which are compared") {
  meeting_ranks ranks{2};
  auto calls = [&](uint32_t rank) { return call_of(*ranks.all[rank], proto::REDUCE, 4); };
  auto one = calls(0), other = calls(1);
  auto& what = *other.mutable_parts(0)->mutable_collective();
  SUBCASE("the reduction") {
    what.set_op(gpu_sim::MAX);
  }
  SUBCASE("sum and average") {
    what.set_op(gpu_sim::AVG);
  }
  SUBCASE("sum and a sum with factors") {
    what.set_op(gpu_sim::PREMUL_SUM);
    what.add_factors(1);
  }
  SUBCASE("the datatype") {
    what.set_datatype(proto::INT32);
  }
  SUBCASE("the count") {
    what.set_count(3);
  }
  SUBCASE("the root") {
    what.set_root(1);
  }
  SUBCASE("the kind") {
    what.set_kind(proto::ALL_REDUCE);
  }
  SUBCASE("in place or not") {
    other.mutable_parts(0)->set_in_place(true);
    other.mutable_parts(0)->set_output(0);
  }
  auto first = make(*ranks.all[0], one);
  CHECK(ranks.all[0]->messages.empty());
  make(*ranks.all[1], other);
  CHECK(ranks.all[1]->messages.size() == 1);
  CHECK(!first.test());
  CHECK(ranks.all[0]->messages.size() == 1);
  for (auto& rank : ranks.all)
    CHECK(rank->meeting->calls_met() == 0);
}

TEST_CASE("shared mailbox: calls that cannot use it become messages at once") {
  meeting_ranks ranks{2};
  auto& x = *ranks.all[0];
  auto call = call_of(x, proto::ALL_REDUCE, 4);
  auto& part = *call.mutable_parts(0);
  auto& what = *part.mutable_collective();
  SUBCASE("too large") {
    what.set_count(slot_bytes / sizeof(float) + 1);
  }
  SUBCASE("an algorithm by name") {
    what.set_algorithm("ring");
  }
  SUBCASE("a pair") {
    what.set_kind(proto::SEND_RECV);
  }
  SUBCASE("an operation of the user's") {
    what.set_op(gpu_sim::USER);
  }
  SUBCASE("blocks of several sizes") {
    what.add_counts(1);
  }
  SUBCASE("no address of the device") {
    part.set_input(1);
  }
  SUBCASE("not a whole element's address") {
    part.set_output(part.output() + 1);
  }
  SUBCASE("input and output overlap") {
    part.set_output(part.input() + sizeof(float));
  }
  SUBCASE("an older epoch") {
    call.set_epoch(0);
  }
  SUBCASE("a group") {
    *call.add_parts() = part;
  }
  SUBCASE("a split") {
    part.set_split(true);
  }
  SUBCASE("no such root") {
    what.set_kind(proto::BROADCAST);
    what.set_root(2);
  }
  make(x, call);
  CHECK(x.messages.size() == 1);
}

TEST_CASE("shared mailbox: a rank that waits too long sends a message, and then does not wait for late ranks") {
  meeting_ranks ranks{2};
  auto call = call_of(*ranks.all[0], proto::BARRIER, 0);
  call.set_timeout_ns(std::chrono::nanoseconds{2ms}.count()); // it waits for half of it
  auto one = make(*ranks.all[0], call);
  CHECK(one.wait(20ms) == errc::timed_out);
  CHECK(ranks.all[0]->messages.size() == 1);
  finish(*ranks.all[0]->messages[0].second, {}, make_error(errc::timed_out, "rank 1 has not called"));
  make(*ranks.all[0], call_of(*ranks.all[0], proto::BARRIER, 0));
  CHECK(ranks.all[0]->messages.size() == 2);
}

TEST_CASE("shared mailbox: after an answer of another epoch the rank no longer uses it") {
  meeting_ranks ranks{2};
  auto ring = call_of(*ranks.all[0], proto::BARRIER, 0);
  ring.mutable_parts(0)->mutable_collective()->set_algorithm("ring");
  for (auto& rank : ranks.all) {
    make(*rank, ring);
    proto::RankCallResponse answer;
    answer.set_epoch(rank == ranks.all[0] ? 2 : 1);
    finish(*rank->messages.back().second, answer, caf::none);
  }
  auto late = make(*ranks.all[1], call_of(*ranks.all[1], proto::BARRIER, 0));
  CHECK(!late.test());
  make(*ranks.all[0], call_of(*ranks.all[0], proto::BARRIER, 0));
  CHECK(ranks.all[0]->messages.size() == 2);
  CHECK(!late.test());
  CHECK(ranks.all[1]->messages.size() == 2);
}

TEST_CASE("shared mailbox: a call of another communicator of the device waits until what is open is settled") {
  meeting_ranks ranks{2};
  auto& x = *ranks.all[0];
  auto call = call_of(x, proto::BARRIER, 0);
  call.set_timeout_ns(std::chrono::nanoseconds{2ms}.count());
  auto open = make(x, call);
  auto other = begin_work([] { return "a call elsewhere"; });
  rank_mailbox::make_way(x.device, *other);
  CHECK(x.messages.size() == 1); // it was given up
  CHECK(x.device->messages_under_way == 2);
}

TEST_CASE("shared mailbox: after a handle is destroyed the others send messages, and rank 0 reports the operations") {
  meeting_ranks ranks{2};
  for (auto& rank : ranks.all)
    make(*rank, call_of(*rank, proto::ALL_REDUCE, 4));
  CHECK(ranks.all[0]->meeting->wants_ticks());
  CHECK(ranks.all[0]->meeting->tick()); // until it is reported
  auto done = ranks.all[0]->meeting->report(true);
  REQUIRE(done);
  CHECK(done->operations() == 1);
  CHECK(done->bytes() == 4 * sizeof(float));
  CHECK(done->world_size() == 2);
  CHECK(!ranks.all[0]->meeting->report(true));
  auto waits = make(*ranks.all[0], call_of(*ranks.all[0], proto::BARRIER, 0));
  ranks.all[1]->meeting->leave();
  CHECK(!waits.test());
  CHECK(ranks.all[0]->messages.size() == 1);
}

TEST_CASE("shared mailbox: where the page is truncated no rank gets a sum, and none sends a call that matches a "
          "different one") {
  meeting_ranks ranks{2};
  auto page = ranks.pages.page_of(whole_world, epoch_number{1}, 2);
  REQUIRE(page);
  auto call = [&](uint32_t rank) {
    auto& x = *ranks.all[rank];
    *x.floats(0) = 1;
    return make(x, call_of(x, proto::ALL_REDUCE, 1));
  };
  call(0);
  REQUIRE(call(1).test()); // rank 0 has not looked
  bool wiped = false;
  SUBCASE("cut") {}
  SUBCASE("cut, and made longer again") {
    wiped = true;
  }
  auto bytes = std::filesystem::file_size(page->file());
  std::filesystem::resize_file(page->file(), 0);
  if (wiped)
    std::filesystem::resize_file(page->file(), bytes);
  for (uint32_t rank : {1u, 0u, 1u, 0u}) {
    auto made = call(rank);
    CHECK(made.wait(1s) == errc::aborted);
    auto& x = *ranks.all[rank];
    CHECK(x.messages.empty());
    CHECK(x.aborts.size() == 1);
    CHECK(x.device->messages_under_way == 0);
  }
  CHECK(ranks.all[0]->meeting->calls_met() == 0);
  CHECK(contains(ranks.all[0]->aborts.front(),
                 "rank 0 of communicator 7: the shared-memory page of its ranks was truncated"));
}

TEST_CASE("shared mailbox: a rank whose device's memory was truncated contributes no zeros and gets an error") {
  meeting_ranks ranks{2};
  auto& x = *ranks.all[0];
  auto& other = *ranks.all[1];
  auto memory = x.device->memory->place()->file;
  SUBCASE("before its call, which becomes a message") {
    std::filesystem::resize_file(memory, 0);
    make(x, call_of(x, proto::ALL_REDUCE, 1));
    CHECK(x.messages.size() == 1);
    make(other, call_of(other, proto::ALL_REDUCE, 1));
    CHECK(other.messages.size() == 1);
  }
  SUBCASE("between its input and its output") {
    auto made = make(x, call_of(x, proto::ALL_REDUCE, 1));
    std::filesystem::resize_file(memory, 0);
    CHECK(!make(other, call_of(other, proto::ALL_REDUCE, 1)).wait(1s)); // it was met, and the input was right
    CHECK(made.wait(1s) == errc::device_lost);
  }
}

TEST_CASE("meeting pages: one for each epoch, none once they are closed, and nothing is left behind") {
  shared_mailboxes pages{slot_bytes};
  auto first = pages.page_of(whole_world, epoch_number{1}, 2);
  REQUIRE(first);
  CHECK(pages.page_of(whole_world, epoch_number{1}, 2)->file() == first->file());
  CHECK(pages.page_of(whole_world, epoch_number{1}, 3).error() == errc::unreachable);
  auto second = pages.page_of(whole_world, epoch_number{2}, 2);
  REQUIRE(second);
  CHECK(!std::filesystem::exists(first->file()));
  CHECK(pages.page_of(whole_world, epoch_number{1}, 2).error() == errc::unreachable);
  pages.close(whole_world);
  CHECK(!std::filesystem::exists(second->file()));
  CHECK(pages.page_of(whole_world, epoch_number{2}, 2).error() == errc::unreachable);
  CHECK(pages.page_of(whole_world, epoch_number{3}, 2));
  CHECK(shared_mailboxes{0}.page_of(whole_world, epoch_number{1}, 2).error() == errc::unreachable);
}

TEST_CASE("meeting pages: another host's, a longer one and another file of that name are refused") {
  shared_mailboxes pages{slot_bytes};
  auto page = pages.page_of(whole_world, epoch_number{1}, 2);
  REQUIRE(page);
  auto bytes = shared_mailbox::bytes_of(2, slot_bytes);
  CHECK(mailbox_file::reach(*page, bytes));
  CHECK(mailbox_file::reach(*page, 2 * bytes).error() == errc::unreachable);
  auto elsewhere = *page;
  elsewhere.set_host(page->host() + 1);
  CHECK(mailbox_file::reach(elsewhere, bytes).error() == errc::unreachable);
  auto another = *page;
  another.set_inode(page->inode() + 1);
  CHECK(mailbox_file::reach(another, bytes).error() == errc::unreachable);
}
