// Ranks whose devices are lost, all at once or one by one, and ranks that each process starts.
#include "actors/training/training_rank.hpp"
#include "messages/wire_ids.hpp"
#include "tests/actors/training/silent_rank.hpp"
#include "tests/support/text_search.hpp"
#include "tests/support/training/simulated_training.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

constexpr uint64_t steps = 4, batch = 6;
constexpr uint32_t layers = 4;

/// A run whose ranks are started by processes, not by the trainer; there is a spare device for each.
struct run_of_processes {
  explicit run_of_processes(uint64_t seed, uint32_t count, training_job job = small_job("ddp", layers, batch, batch),
                            bool mirror = true)
    : ranks(count), cluster{journaled_devices(2 * ranks, seed)}, run{cluster, std::move(job), ranks, steps} {
    const auto info = cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
    for (auto& each : info.devices())
      ids.push_back(id_of(each.metadata()));
    run.settings.starts_ranks = false;
    run.settings.record = numbered_record;
    run.settings.mirror = mirror;
    run.start();
  }

  /// The device may be lost.
  void start_rank(uint32_t place, uint32_t device, std::vector<std::string> told = {}) {
    rank_settings its;
    its.job = run.job;
    its.coordinator = cluster.host;
    its.trainer = run.handle;
    its.device = ids[device];
    its.place = place;
    its.shared_settings = std::move(told);
    started.push_back(cluster.sys.spawn(training_rank, its));
  }
  void start_silent(uint32_t place, begin_function begin) {
    started.push_back(cluster.sys.spawn(silent_rank, run.handle, rank_ready{ids[place], place, caf::none, {}}, begin));
  }
  void start_ranks() {
    for (uint32_t i = 0; i < ranks; ++i)
      start_rank(i, i);
  }
  void check_weights() const {
    REQUIRE(run.problem() == "");
    const auto alone = weights_alone(batch, steps, layers);
    for (uint32_t layer = 0; layer < layers; ++layer)
      CHECK(distance(run.weights(layer), alone[layer]) < 1e-12);
  }
  /// The devices of the last step, in the order of their ranks.
  std::vector<device_id> last_ranks() const {
    std::vector<device_id> result;
    const auto records = cluster.log->read();
    REQUIRE(records);
    for (auto& record : *records)
      if (record.training_step().step() == steps - 1) {
        result.clear();
        for (auto id : record.training_step().device_ids())
          result.push_back(device_id{id});
      }
    return result;
  }

  uint32_t ranks;
  simulated_cluster cluster;
  simulated_training run;
  std::vector<device_id> ids;
  std::vector<rank_actor> started;
};

/// Two pairs of tensor-parallel ranks: each part of a layer exists twice.
training_job two_pairs() {
  auto result = small_job("tensor", layers, batch, batch);
  result.shape.parallel.tp = 2;
  return result;
}

} // namespace

TEST_CASE("devices: when all ranks have lost their devices, the replacements repeat the step") {
  uint64_t waited = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    run_of_processes x{seed, 2};
    x.start_ranks();
    x.run.run_steps(1);
    x.run.run_messages(seed * 5);
    if (x.run.outcome)
      continue;
    for (uint32_t i : {0u, 1u})
      x.run.kill(i);
    x.cluster.run_until([&] { return x.run.notes_with("waiting up to") > 0 || x.run.outcome; });
    for (uint32_t i : {0u, 1u})
      x.start_rank(i, 2 + i);
    x.run.finish();
    x.check_weights();
    waited += x.run.notes_with("cannot be run by 0 ranks");
  }
  CHECK(waited > 20);
}

TEST_CASE("devices: a second wait has the whole patience again") {
  run_of_processes x{21, 2};
  x.start_ranks();
  x.run.run_steps(1);
  auto lose = [&](uint32_t device, uint64_t times) {
    x.run.kill(device);
    x.cluster.run_until([&] { return x.run.notes_with("waiting up to") == times || x.run.outcome; });
    const auto until = x.cluster.scheduler.clock().now() + x.run.settings.patience * 2 / 3;
    x.cluster.run_until([&] { return x.cluster.scheduler.clock().now() >= until || x.run.outcome; });
    REQUIRE(!x.run.outcome);
  };
  x.run.kill(0);
  lose(1, 1);
  x.start_rank(0, 2);
  x.run.run_steps(2);
  lose(2, 2);
  x.start_rank(0, 3);
  x.run.finish();
  x.check_weights();
}

TEST_CASE("devices: without processes there is no wait, and a wait for devices has a limit") {
  for (auto reason : {caf::exit_reason::remote_link_unreachable, caf::exit_reason::kill}) {
    const bool may_return = reason == caf::exit_reason::kill;
    CAPTURE(may_return);
    run_of_processes x{7, 2};
    x.start_ranks();
    x.run.run_steps(1);
    const auto before = x.cluster.scheduler.clock().now();
    for (auto& each : x.started)
      x.cluster.self->send_exit(each, reason);
    x.run.finish();
    CHECK(x.run.problem().find("cannot be run by 0 ranks: no rank is left") != std::string::npos);
    const auto waited = x.cluster.scheduler.clock().now() - before;
    CHECK((waited > x.run.settings.patience) == may_return);
    CHECK(waited < x.run.settings.patience + std::chrono::seconds{5});
  }
}

TEST_CASE("devices: replacements for lost processes are awaited for the replacement limit") {
  for (auto limit : {std::chrono::seconds{3}, std::chrono::seconds{30}}) {
    simulated_cluster cluster{training_devices(2)};
    simulated_training run{cluster, small_job("ddp", 4, 4, 4), 2, 4};
    run.settings.replacement_limit = limit;
    run.start();
    run.run_steps(1);
    const auto before = cluster.scheduler.clock().now();
    for (auto& device : run.devices)
      cluster.self->send_exit(device, caf::exit_reason::remote_link_unreachable);
    run.finish();
    CHECK_MESSAGE(run.problem().find("cannot be run by 0 ranks: no rank is left") != std::string::npos, run.problem());
    const auto waited = cluster.scheduler.clock().now() - before;
    CHECK(waited >= limit);
    CHECK(waited < limit + std::chrono::seconds{10});
  }
}

TEST_CASE("devices: a rank whose device was lost before it was ready learns that, and joins with the next one") {
  for (uint32_t lost : {0u, 1u}) {
    CAPTURE(lost);
    run_of_processes x{3, 2};
    x.run.kill(lost);
    x.cluster.run_until([&] { return x.cluster.scheduler.jobs.empty(); });
    x.start_ranks();
    std::string reason;
    x.cluster.self->monitor(x.started[lost]);
    x.cluster.run_until([&] { return x.run.notes_with("cannot join: ") == 1; });
    x.start_rank(lost, 2);
    x.run.finish();
    x.check_weights();
    x.cluster.self->receive([&](const caf::down_msg& down) { reason = render(down.reason); });
    CHECK(reason.find("the run goes on without this rank: ")
          != std::string::npos); // its process searches another device
    CHECK(x.run.reports.back().ranks == 2);
  }
}

TEST_CASE("devices: the others start without a process that has exited before its rank was ready") {
  run_of_processes x{9, 3};
  const auto before = x.cluster.scheduler.clock().now();
  x.start_rank(0, 0);
  x.start_rank(1, 1);
  x.run.kill(2);
  x.run.finish();
  x.check_weights();
  CHECK(x.run.reports.front().ranks == 2);
  CHECK(x.cluster.scheduler.clock().now() - before < std::chrono::seconds{10});
}

TEST_CASE("devices: a late rank joins, and one that reports twice before the start counts once") {
  run_of_processes x{11, 2};
  x.start_rank(0, 0);
  x.cluster.run_until([&] { return x.run.notes_with("has not become ready within") > 0; });
  x.start_rank(1, 1);
  x.run.finish();
  x.check_weights();

  run_of_processes y{12, 2};
  y.start_rank(0, 0);
  const auto before = y.cluster.scheduler.clock().now();
  y.start_rank(1, 2); // its first device was lost, which was not reported
  y.run.finish();
  y.check_weights();
  CHECK(y.run.reports.front().ranks == 2);
  CHECK(y.cluster.scheduler.clock().now() - before < std::chrono::seconds{10});
}

TEST_CASE("devices: a rank that joins again has its old place, whatever happened meanwhile") {
  for (uint32_t lost : {0u, 1u, 2u}) {
    CAPTURE(lost);
    run_of_processes x{5, 3};
    x.start_ranks();
    x.run.run_steps(1);
    x.run.kill(lost);
    x.cluster.run_until([&] { return x.run.notes_with("is given up") > 0 || x.run.outcome; });
    x.start_rank(lost, 3);
    x.run.finish();
    x.check_weights();
    auto ranks = std::vector<device_id>(x.ids.begin(), x.ids.begin() + 3);
    ranks[lost] = x.ids[3];
    CHECK(x.last_ranks() == ranks);
  }
}

TEST_CASE("devices: ranks with parts of the model are preferred to new ones if not all can be used") {
  run_of_processes x{13, 4, two_pairs()};
  x.start_ranks();
  x.run.run_steps(1);
  for (uint32_t lost : {0u, 3u})
    x.run.kill(lost);
  x.cluster.run_until([&] { return x.run.notes_with("is given up") > 0; });
  x.start_rank(0, 4);
  x.run.finish();
  x.check_weights();
  CHECK(x.run.notes_with("from step 1 on 2 ranks train, 2 tensor-parallel; 1 more does nothing") == 1);
  CHECK(x.last_ranks() == std::vector<device_id>{x.ids[1], x.ids[2]});
}

TEST_CASE("devices: the run goes back if an idle rank is lost that alone had a part") {
  uint64_t back = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    simulated_cluster cluster{training_devices(4, seed)};
    simulated_training run{cluster, two_pairs(), 4, steps};
    run.settings.starts_ranks = true;
    run.start();
    run.run_steps(2);
    run.kill(1); // of those left, 0 and 2 have the first part of each layer; 3 alone has the second one
    cluster.run_until([&] { return run.notes_with("does nothing until others join") > 0 || run.outcome; });
    run.run_messages(seed * 2);
    run.kill(3);
    run.finish();
    REQUIRE(run.problem() == "");
    const auto alone = weights_alone(batch, steps, layers);
    for (uint32_t layer = 0; layer < layers; ++layer)
      CHECK(distance(run.weights(layer), alone[layer]) < 1e-12);
    back += run.notes_with("back to the first weights; to be done again: ");
  }
  CHECK(back > 10);
}

TEST_CASE("devices: a rank that neither works nor gives up is left out within twice the patience") {
  run_of_processes x{15, 3};
  x.start_rank(0, 0);
  x.start_rank(1, 1);
  x.start_silent(2, [](auto&, auto*) {});
  const auto before = x.cluster.scheduler.clock().now();
  x.run.finish();
  x.check_weights();
  CHECK(x.run.reports.front().ranks == 2);
  CHECK(x.run.notes_with("step 0 has been stalled for 5 s: rank 0 waits for rank 2 to call all_reduce of the ") == 1);
  CHECK(x.run.notes_with("step 0 has been stalled for 15 s: rank 0 waits") == 1);
  CHECK(x.run.notes_with("step 0 has been stalled for 5 s: the rank of device 0x3 has not given up its step; "
                         "a late rank is left out if its device is lost, or after 60 s")
        == 1);
  CHECK(x.run.notes_with("its rank did not give up its step in time") == 1);
  CHECK(x.cluster.scheduler.clock().now() - before < 2 * x.run.settings.patience + std::chrono::seconds{5});
}

TEST_CASE("devices: the warning names ranks that have not finished the step, and how long they have been silent") {
  run_of_processes x{23, 2};
  x.start_silent(0, [](auto&, auto*) {});
  x.start_silent(1, [](const step_order& order, auto* self) {
    self->delayed_send(caf::actor_cast<trainer_actor>(self->current_sender()), std::chrono::seconds{2},
                       rank_alive{order.attempt, order.rank});
  });
  x.cluster.run_until([&] { return x.run.notes_with("has been stalled for 5 s") > 0; });
  const auto said = std::ranges::find_if(x.run.notes, [](auto& y) { return contains(y, "has been stalled"); });
  CHECK_MESSAGE(contains(*said, ": 2 ranks have not finished it: rank 0 (device 0x1), last heard 7"), *said);
  CHECK_MESSAGE(contains(*said, "ago, rank 1 (device 0x2), last heard 5"), *said);
}

TEST_CASE("devices: a device that is lost while its rank does not give up is left out at once") {
  run_of_processes x{19, 3};
  x.start_rank(0, 0);
  x.start_rank(1, 1);
  x.start_silent(2, [](auto&, auto*) {});
  x.cluster.run_until([&] { return x.run.notes_with("has been stalled") > 0; });
  x.run.kill(1);
  x.cluster.run_until([&] { return x.run.notes_with("is given up: ") > 0; });
  x.run.run_messages(100); // the coordinator still had it when it was asked
  const auto before = x.cluster.scheduler.clock().now();
  x.run.kill(2);
  x.run.finish();
  x.check_weights();
  CHECK(x.run.notes_with("its rank did not give up its step in time") == 0);
  CHECK(x.run.reports.front().ranks == 1);
  CHECK(x.cluster.scheduler.clock().now() - before < std::chrono::seconds{5});
}

TEST_CASE("devices: a rank that is asked to stop hands over its parts, and no step is repeated") {
  uint64_t left = 0;
  for (const std::string strategy : {"ddp", "zero1", "zero3", "1f1b"})
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      CAPTURE(strategy);
      CAPTURE(seed);
      run_of_processes x{seed, 3, small_job(strategy, layers, batch, 2), false};
      x.start_ranks();
      x.run.run_steps(seed % 3);
      x.run.run_messages(seed * 5);
      if (x.run.outcome)
        continue;
      x.cluster.self->send(x.run.handle, rank_leaving{x.ids[1]});
      if (seed % 4 == 0)
        x.cluster.self->send(x.run.handle, rank_leaving{x.ids[2]});
      x.run.finish();
      x.check_weights();
      CHECK(x.run.notes_with("back to ") == 0);
      CHECK(x.run.notes_with(" is lost") == 0);
      CHECK(x.run.reports.size() == steps);
      for (auto& each : x.run.reports)
        CHECK(each.attempts == 1);
      const auto went = x.run.notes_with("has left; its parts of the model are taken over");
      CHECK(x.run.reports.back().ranks == 3 - went);
      left += went;
    }
  CHECK(left > 60);
}

TEST_CASE("devices: the model is right if any rank is lost during a handover") {
  uint64_t left = 0, back = 0;
  for (const std::string strategy : {"ddp", "zero3"})
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      CAPTURE(strategy);
      CAPTURE(seed);
      run_of_processes x{seed, 3, small_job(strategy, layers, batch, 2), false};
      x.start_ranks();
      x.run.run_steps(1);
      x.cluster.self->send(x.run.handle, rank_leaving{x.ids[1]});
      x.cluster.run_until([&] { return x.run.notes_with(" leaves after step ") > 0; });
      x.run.run_messages(3 * seed);
      x.run.kill(seed % 2 == 0 ? 2 : 1);
      x.run.finish();
      x.check_weights();
      left += x.run.notes_with("has left");
      back += x.run.notes_with("to be done again: ");
    }
  CHECK(left > 20);
  CHECK(back > 20);
}

TEST_CASE("devices: a part is taken from the rank that leaves if the other rank with that part is lost") {
  uint64_t beside = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    run_of_processes x{seed, 4, two_pairs(), false};
    x.start_ranks();
    x.run.run_steps(1);
    x.cluster.self->send(x.run.handle, rank_leaving{x.ids[3]}); // 1 has the same part of each layer
    x.cluster.run_until([&] { return x.run.notes_with(" leaves after step ") > 0; });
    x.cluster.run_until([&] { return x.run.reports.size() == 2; }); // and then it hands over
    x.run.run_messages(seed);
    if (x.run.notes_with("has left") > 0)
      continue;
    x.run.kill(1);
    x.run.finish();
    x.check_weights();
    auto first_with = [&](std::string_view what) {
      return std::ranges::find_if(x.run.notes, [&](auto& note) { return note.find(what) != note.npos; });
    };
    if (first_with("has left") < first_with(" is lost: "))
      continue;
    CHECK(x.run.notes_with("to be done again: ") == 0);
    ++beside;
  }
  CHECK(beside > 20);
}

TEST_CASE("devices: a rank that is lost after it was asked to stop counts as lost") {
  run_of_processes x{23, 3, small_job("zero3", layers, batch, 2)};
  x.start_ranks();
  x.run.run_steps(1);
  x.cluster.self->send(x.run.handle, rank_leaving{x.ids[1]});
  x.run.run_messages(3);
  x.run.kill(1);
  x.run.finish();
  x.check_weights();
  CHECK(x.run.notes_with("has left") == 0);
  CHECK(x.run.notes_with(" is lost") == 1);
  CHECK(x.run.reports.back().ranks == 2);
}

TEST_CASE("devices: a run that is asked to stop while it waits for devices keeps the host's model") {
  run_of_processes x{17, 2, small_job("zero3", layers, batch, batch)};
  std::optional<model_snapshot> kept;
  x.cluster.self->send_exit(x.run.handle, caf::exit_reason::kill); // and another run, which reports the model
  x.run.settings.image_every = 100;
  x.run.settings.watcher.image = [&](const model_snapshot& shown) { kept = shown; };
  x.run.start();
  x.start_ranks();
  x.run.run_steps(2);
  x.cluster.run_until([&] { return x.run.reports.size() == 3; }); // the host has the model as of step 2 by then
  for (uint32_t i : {0u, 1u})
    x.run.kill(i);
  x.cluster.run_until([&] { return x.run.notes_with("waiting up to") > 0; });
  CHECK(!kept);
  x.cluster.self->send(x.run.handle, atom::expire_v);
  x.run.finish();
  CHECK(x.run.problem().find("the run was asked to stop") != std::string::npos);
  REQUIRE(kept);
  const auto alone = weights_alone(batch, static_cast<int>(kept->step), layers);
  for (uint32_t layer = 0; layer < layers; ++layer)
    CHECK(distance(x.run.weights_in(*kept, layer), alone[layer]) < 1e-12);
}

TEST_CASE("devices: a rank with other settings ends the run before the first step, and cannot join later") {
  run_of_processes x{19, 2};
  x.cluster.self->monitor(x.run.handle);
  x.start_rank(0, 0);
  x.start_rank(1, 1, {"seed 2"});
  x.run.finish();
  CHECK(x.run.problem()
        == fmt::format("the process of {} trains with seed 2, rank 0's with less: all need the same settings",
                       ringmaster::text_of(x.ids[1])));
  x.cluster.self->receive([&](const caf::down_msg& down) { CHECK(render(down.reason) == x.run.problem()); });

  run_of_processes y{20, 2};
  y.start_ranks();
  y.run.run_steps(1);
  y.run.kill(1);
  y.cluster.run_until([&] { return y.run.notes_with("is given up") > 0; });
  y.start_rank(1, 2, {"seed 2"});
  y.run.finish();
  y.check_weights();
  CHECK(y.run.notes_with("cannot join: the process of ") == 1);
}

TEST_CASE("devices: a message that no rank of a step can send ends the run with an error") {
  const auto answers = [](auto word) {
    return [word](const step_order& x, rank_actor::pointer self) mutable {
      word.attempt = x.attempt;
      if constexpr (std::is_same_v<decltype(word), rank_arrival>)
        self->send(caf::actor_cast<trainer_actor>(self->current_sender()), std::vector{word});
      else
        self->send(caf::actor_cast<trainer_actor>(self->current_sender()), word);
    };
  };
  rank_arrival of_nobody, to_nobody, without_stride, not_in_it;
  of_nobody.rank = 7;
  of_nobody.what = to_nobody.what = op::send;
  to_nobody.rank = 1;
  to_nobody.peer = 7;
  without_stride.what = not_in_it.what = op::all_reduce;
  without_stride.rank = not_in_it.rank = 1;
  without_stride.among = {0, 2, 0};
  not_in_it.among = {0, 1, 1};
  rank_ended without_layer, of_none;
  without_layer.rank = 1;
  without_layer.made = {{value_kind::weight, 99, {}, {}}};
  of_none.rank = 7;
  room_found unasked;
  unasked.rank = 1;
  part_wanted unknown;
  unknown.rank = 1;
  unknown.what.layer = 99;
  for (const auto& say :
       std::vector<begin_function>{answers(of_nobody), answers(to_nobody), answers(without_stride), answers(not_in_it),
                                   answers(without_layer), answers(of_none), answers(unasked), answers(unknown)}) {
    run_of_processes x{21, 2};
    x.start_rank(0, 0);
    x.start_silent(1, say);
    x.run.finish();
    CHECK(x.run.problem().find("says what no rank of 2 can: its process runs another program") != std::string::npos);
  }
}
