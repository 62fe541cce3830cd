#include "tests/support/actor_state.hpp"
#include "tests/support/rank_cluster.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

using floats = std::vector<float>;

constexpr uint64_t in = 0, out = 64, room = 128; // elements

/// Each rank's input: 10 times its number, and on.
floats input_of(uint32_t rank, uint64_t count) {
  floats result(count);
  std::iota(result.begin(), result.end(), 10.0f * static_cast<float>(rank));
  return result;
}

/// What becomes of `call` on every rank, called in an order drawn from the seed.
std::vector<work> call_on_all(rank_cluster& x, const std::function<work(uint32_t)>& call) {
  std::vector<uint32_t> order(x.handles.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), x.cluster.random);
  std::vector<work> result(order.size());
  for (auto rank : order) {
    result[rank] = call(rank);
    x.run_messages(x.cluster.random() % 6);
  }
  return result;
}

struct four_ranks : rank_cluster {
  explicit four_ranks(uint64_t seed = 1, bool journaled = false) : rank_cluster{options(seed, journaled), 4} {
    for (uint32_t rank = 0; rank < 4; ++rank)
      fill(rank, in, input_of(rank, 16));
  }
  static simulation_options options(uint64_t seed, bool journaled) {
    simulation_options result;
    result.seed = seed;
    result.journaled = journaled;
    return result;
  }
};

bool contains_all(const std::string& text, std::initializer_list<const char*> pieces) {
  return std::all_of(pieces.begin(), pieces.end(), [&](auto x) { return contains(text, x); });
}

/// Each rank's call of a split into its colour; the lower ranks come last.
std::vector<work> split(rank_cluster& x, const std::vector<int32_t>& colors) {
  std::vector<work> result;
  for (uint32_t rank = 0; rank < colors.size(); ++rank) {
    proto::RankCall::Part part;
    part.set_split(true);
    part.set_color(colors[rank]);
    part.set_key(-static_cast<int64_t>(rank));
    result.push_back(x.handles[rank].call(part, {}));
  }
  return result;
}

} // namespace

TEST_CASE("rank calls: every collective, from every rank's own handle") {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    four_ranks x{seed};
    auto f = proto::FLOAT32;
    auto& h = x.handles;
    auto b = [&](uint32_t rank) { return x.buffers(rank, in, out); };
    REQUIRE(x.all_well(call_on_all(x, [&](uint32_t r) { return h[r].all_reduce(b(r), 3, f); })));
    CHECK(x.read(2, out, 3) == floats{60, 64, 68});
    REQUIRE(x.all_well(call_on_all(x, [&](uint32_t r) { return h[r].reduce(b(r), 2, f, 3, {gpu_sim::MAX}); })));
    CHECK(x.read(3, out, 2) == floats{30, 31});
    REQUIRE(
      x.all_well(call_on_all(x, [&](uint32_t r) { return h[r].broadcast(b(r), 3, f, 1, {.algorithm = "tree"}); })));
    CHECK(x.read(0, out, 3) == floats{10, 11, 12});
    REQUIRE(x.all_well(call_on_all(x, [&](uint32_t r) { return h[r].all_gather(b(r), 2, f, {.algorithm = "ring"}); })));
    CHECK(x.read(1, out, 8) == floats{0, 1, 10, 11, 20, 21, 30, 31});
    REQUIRE(x.all_well(call_on_all(x, [&](uint32_t r) { return h[r].reduce_scatter(b(r), 2, f); })));
    CHECK(x.read(3, out, 2) == floats{84, 88});
    REQUIRE(x.all_well(call_on_all(x, [&](uint32_t r) { return h[r].all_to_all(b(r), 1, f); })));
    CHECK(x.read(2, out, 4) == floats{2, 12, 22, 32});
    REQUIRE(x.all_well(call_on_all(x, [&](uint32_t r) { return h[r].gather(b(r), 1, f, 0); })));
    CHECK(x.read(0, out, 4) == floats{0, 10, 20, 30});
    REQUIRE(x.all_well(call_on_all(x, [&](uint32_t r) { return h[r].scatter(b(r), 2, f, 2); })));
    CHECK(x.read(3, out, 2) == floats{26, 27});
    REQUIRE(x.all_well(call_on_all(x, [&](uint32_t r) { return h[r].all_gather_v(b(r), {1, 0, 2, 1}, f); })));
    CHECK(x.read(0, out, 4) == floats{0, 20, 21, 30});
    REQUIRE(x.all_well(call_on_all(x, [&](uint32_t r) { return h[r].reduce_scatter_v(b(r), {0, 3, 1, 0}, f); })));
    CHECK(x.read(2, out, 1) == floats{72});
    REQUIRE(x.all_well(call_on_all(x, [&](uint32_t r) { return h[r].gather_v(b(r), {1, 0, 2, 1}, f, 1); })));
    CHECK(x.read(1, out, 4) == floats{0, 20, 21, 30});
    REQUIRE(x.all_well(call_on_all(x, [&](uint32_t r) { return h[r].scatter_v(b(r), {1, 0, 2, 1}, f, 0); })));
    CHECK(x.read(2, out, 2) == floats{1, 2});
    REQUIRE(x.all_well(call_on_all(x, [&](uint32_t r) { // rank r sends r elements to each, and gets s from each rank s
      return h[r].all_to_all_v(b(r), std::vector<uint64_t>(4, r), {0, 1, 2, 3}, f);
    })));
    CHECK(x.read(1, out, 6) == floats{11, 22, 23, 33, 34, 35});
    REQUIRE(x.all_well(call_on_all(x, [&](uint32_t r) { return h[r].barrier(); })));
    REQUIRE(x.all_well(call_on_all(x, [&](uint32_t r) { // premul_sum, in place
      return h[r].all_reduce(rank_buffers::at(x.address(r, in)), 2, f, {gpu_sim::PREMUL_SUM, "", r == 0 ? 2.0 : 0.5});
    })));
    CHECK(x.read(1, in, 2) == floats{30, 33.5});
  }
}

TEST_CASE("rank calls: a call returns at once, and its work says when it has ended") {
  four_ranks x;
  auto first = x.handles[0].all_reduce(x.buffers(0, in, out), 3, proto::FLOAT32);
  CHECK(!first.test());
  CHECK(!first.error());
  CHECK(contains(render(first.wait(1ms)), "rank 0 of communicator 1: all_reduce has not ended within 0.0 s"));
  std::vector<work> all{first};
  for (uint32_t rank = 1; rank < 4; ++rank)
    all.push_back(x.handles[rank].all_reduce(x.buffers(rank, in, out), 3, proto::FLOAT32));
  CHECK(x.all_well(all));
  CHECK(!first.wait(1s));
  CHECK(first.epoch() == epoch_number{1});
  CHECK(work{}.test());
}

TEST_CASE("rank calls: a mismatch is an error on every rank, moves nothing, and leaves the communicator usable") {
  four_ranks x{1, true};
  auto errors = x.ended(call_on_all(x, [&](uint32_t r) {
    return x.handles[r].all_reduce(rank_buffers::at(x.address(r, in)), r == 2 ? 9 : 8, proto::FLOAT32);
  }));
  for (uint32_t rank = 0; rank < 4; ++rank) {
    CHECK(contains_all(errors[rank], {"nothing has been moved", "count: 8 on rank 0, 1, 3; 9 on rank 2"}));
    CHECK(x.read(rank, in, 16) == input_of(rank, 16));
  }
  CHECK(x.all_well(call_on_all(x, [&](uint32_t r) { return x.handles[r].barrier(); })));
  auto records = x.cluster.history();
  CHECK(std::count_if(records.begin(), records.end(), [](auto& y) { return y.has_calls_refused(); }) == 1);
}

TEST_CASE("rank calls: what a rank's buffers do not allow fails on every rank") {
  four_ranks x;
  auto errors = x.ended(call_on_all(x, [&](uint32_t r) {
    return x.handles[r].all_reduce(x.buffers(r, in, r == 1 ? 1 : out), 3, proto::FLOAT32);
  }));
  for (auto& error : errors)
    CHECK(contains_all(error, {"all_reduce: ", "rank 1: input at", "overlap"}));
  errors = x.ended(call_on_all(x, [&](uint32_t r) {
    return x.handles[r].all_reduce(x.buffers(r, in, out), 3, proto::FLOAT32, {}, {.algorithm = "rong"});
  }));
  for (auto& error : errors)
    CHECK(contains(error, "rong"));
}

TEST_CASE("rank calls: a rank that never calls is named to every waiter when the limit passes") {
  four_ranks x;
  REQUIRE(x.all_well(
    call_on_all(x, [&](uint32_t r) { return x.handles[r].broadcast(x.buffers(r, in, out), 1, proto::FLOAT32, 0); })));
  std::vector<work> waiting;
  for (uint32_t rank : {0, 1, 2})
    waiting.push_back(x.handles[rank].all_reduce(x.buffers(rank, in, out), 1, proto::FLOAT32, {}, {.timeout = 2s}));
  for (auto& error : x.ended(waiting))
    CHECK(contains(
      error, "rank 3 (device 0x4) has not called all_reduce #2; it last finished broadcast #1; waiting for 2.0 s"));
  auto late = x.handles[3].all_reduce(x.buffers(3, in, out), 1, proto::FLOAT32);
  CHECK(contains(x.ended({late})[0], "rank 3 (device 0x4) has not called all_reduce #2"));
  CHECK(x.all_well(call_on_all(x, [&](uint32_t r) { return x.handles[r].barrier(); })));
}

TEST_CASE("rank calls: a communicator that dies alone ends its ranks' calls with its reason, matched or not") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    four_ranks x{seed};
    auto open = call_on_all(x, [&](uint32_t r) {
      return x.handles[r].all_reduce(x.buffers(r, in, out), 8, proto::FLOAT32, {}, {.algorithm = "ring"});
    });
    for (uint32_t rank : {0, 2})
      open.push_back(x.handles[rank].broadcast(x.buffers(rank, in, out), 1, proto::FLOAT32, 1));
    x.run_messages(seed * 5);
    auto running = std::count_if(open.begin(), open.end(), [](auto& call) { return !call.test(); });
    REQUIRE(running > 0);
    x.cluster.self->send_exit(communicator_of(x.cluster), make_error(errc::corrupt, "a fault of its own"));
    auto failed = 0;
    for (auto& error : x.ended(open)) {
      failed += !error.empty();
      CHECK((error.empty() || contains(error, "a fault of its own")));
    }
    CHECK(failed >= 2); // the broadcasts, at least
  }
}

TEST_CASE("rank calls: an operation that takes longer than a caller's limit fails on every rank") {
  four_ranks x;
  proto::FaultRequest slow;
  slow.set_kind(proto::FaultRequest::SLOW);
  slow.set_delay_ns(200'000'000);
  x.cluster.inject(x.device(1), slow);
  auto errors = x.ended(call_on_all(x, [&](uint32_t r) {
    return x.handles[r].all_reduce(rank_buffers::at(x.address(r, in)), 8, proto::FLOAT32, {},
                                   {.algorithm = "ring", .timeout = r == 2 ? caf::timespan{1s} : caf::timespan{0}});
  }));
  for (uint32_t rank = 0; rank < 4; ++rank) {
    CHECK(contains(errors[rank], "operation #1 has not ended within 1.0 s"));
    CHECK(x.read(rank, in, 16) == input_of(rank, 16));
  }
}

TEST_CASE("rank calls: two limits that pass together end both operations, and the streams go on") {
  four_ranks x;
  proto::FaultRequest slow;
  slow.set_kind(proto::FaultRequest::SLOW);
  slow.set_delay_ns(400'000'000);
  x.cluster.inject(x.device(1), slow);
  std::vector<work> all;
  for (uint32_t rank = 0; rank < 4; ++rank)
    for (int i = 0; i < 2; ++i)
      all.push_back(x.handles[rank].all_reduce(rank_buffers::at(x.address(rank, in)), 8, proto::FLOAT32, {},
                                               {.algorithm = "ring", .timeout = 250ms}));
  for (auto& error : x.ended(all))
    CHECK(contains(error, "has not ended within 0.2 s"));
  slow.set_delay_ns(0);
  x.cluster.inject(x.device(1), slow);
  CHECK(x.all_well(call_on_all(x, [&](uint32_t r) { return x.handles[r].barrier(); })));
  CHECK(x.read(1, in, 16) == input_of(1, 16)); // memory answers, too
}

TEST_CASE("rank calls: in place, blocks lie where the caller's epoch has them, also after a loss") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    four_ranks x{seed};
    auto gather = [&](uint32_t rank) { // its own block is at its place in the whole
      return x.handles[rank].all_gather(rank_buffers::at(x.address(rank, in)), 1, proto::FLOAT32,
                                        {.algorithm = seed % 2 == 0 ? "ring" : "direct"});
    };
    std::vector<work> all;
    if (seed % 3 != 0)
      all.push_back(gather(3));
    x.cluster.inject(x.device(0), proto::FaultRequest{});
    x.run_messages(seed % 5 * 10);
    for (uint32_t rank : {1, 2, 3})
      if (rank != 3 || seed % 3 == 0)
        all.push_back(gather(rank));
    REQUIRE(x.all_well(all));
    for (uint32_t rank : {1, 2, 3})
      CHECK(x.read(rank, in, 3) == floats{11, 22, 33});
  }
}

TEST_CASE("rank calls: all_to_all_v wants as many counts as ranks, to send and to receive") {
  rank_cluster x{{}, 2};
  auto b = [&](uint32_t rank) { return x.buffers(rank, in, out); };
  auto errors = x.ended({x.handles[0].all_to_all_v(b(0), {1, 2, 3, 4}, {9, 9, 9}, proto::FLOAT32),
                         x.handles[1].all_to_all(b(1), 7, proto::FLOAT32)});
  for (auto& error : errors)
    CHECK(contains(error, "number of counts to send and to receive: 0 and 0 on rank 1; 4 and 3 on rank 0"));
  errors = x.ended({x.handles[0].all_to_all_v(b(0), {1, 2}, {}, proto::FLOAT32),
                    x.handles[1].all_to_all_v(b(1), {1, 2}, {}, proto::FLOAT32)});
  CHECK(contains(errors[0], "2 counts to send, and 0 to receive"));
}

TEST_CASE("rank calls: sends and receives, in any order within a group") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    four_ranks x{seed};
    auto f = proto::FLOAT32;
    REQUIRE(x.all_well(call_on_all(x, [&](uint32_t r) {
      auto& mine = x.handles[r];
      call_group group{{&mine}};
      mine.send(x.address(r, in), 2, f, (r + 1) % 4);
      mine.receive(x.address(r, out), 2, f, (r + 3) % 4);
      mine.all_reduce(x.buffers(r, in, out + 8), 1, f);
      return group.end();
    })));
    for (uint32_t rank = 0; rank < 4; ++rank) {
      CHECK(x.read(rank, out, 2) == input_of((rank + 3) % 4, 2));
      CHECK(x.read(rank, out + 8, 1) == floats{60});
    }
  }
}

TEST_CASE("rank calls: sends that wait for each other in a circle fail at once") {
  four_ranks x;
  auto f = proto::FLOAT32;
  std::vector<work> all;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    all.push_back(x.handles[rank].send(x.address(rank, in), 1, f, (rank + 1) % 4));
    all.push_back(x.handles[rank].receive(x.address(rank, out), 1, f, (rank + 3) % 4));
  }
  for (auto& error : x.ended(all))
    CHECK(contains(error, "each waits for one that can never come"));
}

TEST_CASE(
  "rank calls: the host that waits hears of its own operations, not of what has failed of the ranks' meanwhile") {
  four_ranks x;
  auto& memory = *state_of<device_state>(device_of(x.cluster, x.device(1))).memory;
  auto by_host = [&] {
    proto::CollectiveRequest request;
    request.set_comm_id(1);
    request.mutable_collective()->set_algorithm("ring");
    request.mutable_collective()->set_datatype(proto::FLOAT32);
    request.mutable_collective()->set_count(3);
    for (uint32_t rank = 0; rank < 4; ++rank)
      request.add_inputs(x.address(rank, in));
    REQUIRE(x.cluster.ask_coordinator<proto::CollectiveResponse>(request).error() == "");
    x.run_messages();
  };
  auto by_ranks = [&] {
    return x.ended(call_on_all(x, [&](uint32_t r) {
      return x.handles[r].all_reduce(rank_buffers::at(x.address(r, out)), 3, proto::FLOAT32, {gpu_sim::SUM},
                                     {.algorithm = "ring"});
    }));
  };
  for (bool host_waits_before : {true, false}) {
    by_host();
    if (host_waits_before)
      CHECK(x.cluster.wait(1).status() == gpu_sim::SUCCESS);
    auto hoard = memory.allocate_scratch(1u << 16);
    REQUIRE(hoard);
    CHECK(contains(by_ranks()[0], "rank 1 (device 0x2) failed: device 0x2, scratch"));
    REQUIRE_FALSE(memory.free_scratch(*hoard));
    by_host();
    CHECK(x.cluster.wait(1).status() == gpu_sim::SUCCESS);
    CHECK(x.cluster.wait(1).error() == "");
  }
}

TEST_CASE("rank calls: ranks split by colour and key, and use the parts and the whole at once") {
  four_ranks x;
  auto splits = split(x, {0, 1, 0, -1});
  REQUIRE(x.all_well(splits));
  CHECK(splits[3].answer().split_comm_id() == 0);
  auto even = splits[0].answer().split_comm_id();
  CHECK(splits[2].answer().split_comm_id() == even);
  CHECK(splits[1].answer().split_comm_id() != even);
  CHECK(splits[0].answer().split_rank() == 1); // the lower key goes first
  CHECK(splits[2].answer().split_rank() == 0);
  gpu_sim::GetCommStatusRequest who;
  who.set_commid(even);
  auto members = x.cluster.ask_coordinator<gpu_sim::GetCommStatusResponse>(who);
  communicator_id part{even};
  rank_communicator part0{x.cluster.sys, x.cluster.host, part, members, 1},
    part2{x.cluster.sys, x.cluster.host, part, members, 0};
  std::vector<work> all;
  auto f = proto::FLOAT32;
  for (uint32_t rank = 0; rank < 4; ++rank)
    all.push_back(x.handles[rank].all_reduce(x.buffers(rank, in, out), 1, f));
  all.push_back(part2.all_reduce(x.buffers(2, in, out + 8), 1, f));
  all.push_back(part0.all_reduce(x.buffers(0, in, out + 8), 1, f));
  REQUIRE(x.all_well(all));
  CHECK(x.read(0, out, 1) == floats{60});
  CHECK(x.read(2, out + 8, 1) == floats{20});
}

TEST_CASE("rank calls: a split during the loss of a member is over its callers, or fails for all of them") {
  uint32_t made = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    four_ranks x{seed};
    auto splits = split(x, {0, 1, 0, 1});
    x.run_messages(seed);
    x.cluster.inject(x.device(1), proto::FaultRequest{});
    std::vector<std::string> errors;
    for (uint32_t rank : {0, 2, 3})
      errors.push_back(x.ended({splits[rank]})[0]);
    CHECK((errors[1] == errors[0] && errors[2] == errors[0]));
    (errors[0].empty() ? made : refused)++;
    CAPTURE(errors[0]);
    if (!errors[0].empty())
      CHECK((contains(errors[0], "split again") || contains(errors[0], "device 0x2 was lost")
             || contains(errors[0], "device 0x2 has died")));
    else
      CHECK(splits[0].answer().split_comm_id() == splits[2].answer().split_comm_id());
    REQUIRE(x.all_well({x.handles[0].barrier(), x.handles[2].barrier(), x.handles[3].barrier()}));
  }
  CHECK(made > 0);
  CHECK(refused > 0);
}

TEST_CASE("rank calls: the parts of a split whose callers have been answered otherwise do not stay") {
  uint32_t unknown = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    CAPTURE(seed);
    four_ranks x{seed};
    auto splits = split(x, {0, 1, 0, 1});
    x.run_messages(seed / 2);
    if (seed % 2 == 0) {
      proto::CommAbortRequest abort;
      abort.set_comm_id(x.comm.commid());
      x.cluster.ask_coordinator<proto::CommAbortResponse>(abort);
    } else {
      proto::CommDestroyRequest destroy;
      destroy.set_comm_id(x.comm.commid());
      CHECK(x.cluster.ask_coordinator<proto::CommDestroyResponse>(destroy).success());
    }
    x.ended(splits);
    x.run_messages();
    for (uint64_t id = 2; id <= 3; ++id) {
      gpu_sim::GetCommStatusRequest who;
      who.set_commid(id);
      auto status = x.cluster.ask_coordinator<gpu_sim::GetCommStatusResponse>(who);
      bool told = std::any_of(splits.begin(), splits.end(), [&](auto& y) { return y.answer().split_comm_id() == id; });
      CHECK((status.devices_size() > 0 && status.error().find("destroyed") == std::string::npos) == told);
      unknown += !told && status.error().find("has been destroyed") != std::string::npos ? 1 : 0;
    }
  }
  CHECK(unknown > 0); // parts that were made, and that no rank has heard of
}

TEST_CASE("rank calls: when a rank is lost the others' calls go on, with rank numbers of when they were made") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    four_ranks x{seed};
    auto f = proto::FLOAT32;
    std::vector<work> all;
    for (uint32_t rank : {0, 2, 3})
      all.push_back(x.handles[rank].reduce(x.buffers(rank, in, out), 1, f, 3));
    if (seed % 2 == 0)
      x.handles[1].reduce(x.buffers(1, in, out), 1, f, 3);
    x.cluster.inject(x.device(1), proto::FaultRequest{});
    for (uint32_t rank : {0, 2, 3})
      all.push_back(x.handles[rank].all_reduce(x.buffers(rank, in, out + 8), 1, f));
    REQUIRE(x.all_well(all));
    auto sum = x.read(3, out, 1)[0];
    CHECK((sum == 50 || (seed % 2 == 0 && sum == 60))); // it may have been decided before the loss
    CHECK(x.read(0, out + 8, 1) == floats{50});
    CHECK(all.back().epoch() == epoch_number{2});
    all.clear();
    for (uint32_t rank : {0, 2, 3})
      all.push_back(x.handles[rank].broadcast(x.buffers(rank, in, out), 1, f, 1));
    for (auto& error : x.ended(all))
      CHECK(contains(error, "broadcast: its root, rank 1 (device 0x2), was lost"));
  }
}

TEST_CASE("rank calls: those of an ended communicator, and of one that ends, are answered") {
  four_ranks x;
  auto waiting = x.handles[0].barrier();
  auto split = x.handles[1].barrier();
  x.run_messages();
  proto::CommAbortRequest abort;
  abort.set_comm_id(x.comm.commid());
  abort.set_reason("enough");
  x.cluster.ask_coordinator<proto::CommAbortResponse>(abort);
  for (auto& error : x.ended({waiting, split, x.handles[2].barrier()}))
    CHECK(contains(error, "communicator 1 has ended: aborted by a client: enough"));
  proto::CommDestroyRequest destroy;
  destroy.set_comm_id(x.comm.commid());
  CHECK(x.cluster.ask_coordinator<proto::CommDestroyResponse>(destroy).error() == "");
  CHECK(contains(x.ended({x.handles[3].barrier()})[0], "communicator 1 has been destroyed"));
}

TEST_CASE("rank calls: handles that go leave no call unanswered") {
  rank_cluster x{{}, 2};
  std::optional<rank_communicator> gone{std::move(x.handles[1])};
  auto call = gone->barrier();
  x.run_messages();
  gone.reset();
  CHECK(x.ended({call})[0] == "the rank's handle is gone");
}
