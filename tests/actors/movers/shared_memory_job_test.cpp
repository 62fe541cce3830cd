#include "actors/movers/shared_memory_movers.hpp"
#include "tests/support/deterministic_system.hpp"

#include <cstring>
#include <numeric>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// An all-reduce of int32 over three ranks, each with input and output, whose result is known.
struct all_reduce_of_three {
  explicit all_reduce_of_three(uint64_t count) : outputs(3, std::vector<int32_t>(count, -1)) {
    for (int32_t rank = 0; rank < 3; ++rank) {
      inputs.emplace_back(count);
      std::iota(inputs.back().begin(), inputs.back().end(), rank * 1000);
    }
  }

  shared_memory_operation operation() {
    shared_memory_operation result{proto::ALL_REDUCE,
                                   {.world_size = 3, .count = inputs[0].size()},
                                   *reducer::of(proto::INT32, gpu_sim::SUM),
                                   {},
                                   {},
                                   {}};
    for (size_t rank = 0; rank < 3; ++rank) {
      result.inputs.push_back(reinterpret_cast<std::byte*>(inputs[rank].data()));
      result.outputs.push_back(reinterpret_cast<std::byte*>(outputs[rank].data()));
    }
    return result;
  }

  bool right() const {
    for (auto& output : outputs)
      for (size_t i = 0; i < output.size(); ++i)
        if (output[i] != static_cast<int32_t>(3 * i + 3000))
          return false;
    return true;
  }

  std::vector<std::vector<int32_t>> inputs, outputs;
};

constexpr uint64_t slice_bytes = 240; // ten elements, of three inputs and three outputs

/// In place of a communicator: notes the jobs that it hears of.
struct owner_double {
  explicit owner_double(deterministic_system& system)
    : handle(system.sys.spawn(
      [](caf::event_based_actor*, std::vector<uint64_t>* notified) -> caf::behavior {
        return {[notified](atom::resume, uint64_t number) { notified->push_back(number); }};
      },
      &told)) {}

  communicator_actor owner() const { return caf::actor_cast<communicator_actor>(handle); }

  std::vector<uint64_t> told;
  caf::actor handle;
};

} // namespace

TEST_CASE("shared_memory_job: one worker moves all slices, its own first") {
  for (uint64_t count : {0, 1, 9, 10, 11, 1000}) {
    CAPTURE(count);
    all_reduce_of_three data{count};
    shared_memory_job job{data.operation(), slice_bytes, {}, 4, communicator_actor{}, 1};
    CHECK(job.slices() == (count + 9) / 10);
    for (uint32_t moved = 0; moved < job.slices(); ++moved) {
      CHECK(job.slices_moved() == moved);
      CHECK(job.move_slice(2));
    }
    CHECK(!job.move_slice(2));
    CHECK(!job.move_slice(0));
    CHECK(job.wait());
    CHECK(data.right());
  }
}

TEST_CASE("shared_memory_job: its owner gets a message at the end only if it waits") {
  deterministic_system system;
  owner_double communicator{system};
  for (bool waits : {false, true}) {
    CAPTURE(waits);
    all_reduce_of_three data{30};
    shared_memory_job job{data.operation(), slice_bytes, {}, 2, communicator.owner(), 7};
    CHECK(job.move_slice(1));
    CHECK(job.move_slice(1));
    if (waits)
      CHECK(!job.wait());
    CHECK(job.move_slice(1));
    CHECK(job.wait());
    system.deliver_all();
    CHECK(communicator.told == (waits ? std::vector<uint64_t>{7} : std::vector<uint64_t>{}));
    CHECK(data.right());
  }
  system.stop(communicator.handle);
}

TEST_CASE("shared_memory_movers: many jobs, one after the other and at once, come out right") {
  for (uint32_t threads : {1, 3}) {
    shared_memory_movers pool{threads};
    CHECK(pool.threads() == threads);
    for (uint64_t count = 1; count < 2000; count += 97) {
      CAPTURE(count);
      std::vector<all_reduce_of_three> data(3, all_reduce_of_three{count});
      std::vector<std::shared_ptr<shared_memory_job>> jobs;
      for (auto& x : data) {
        jobs.push_back(std::make_shared<shared_memory_job>(x.operation(), slice_bytes,
                                                           std::vector<std::shared_ptr<mapped_memory>>{},
                                                           pool.threads() + 1, communicator_actor{}, 1));
        pool.help_with(jobs.back());
      }
      while (jobs[0]->move_slice(0)) {
      }
      for (auto& job : jobs) // the pool's threads alone move the second and the third
        while (job->slices_moved() != job->slices())
          std::this_thread::yield();
      CHECK(std::all_of(data.begin(), data.end(), [](auto& x) { return x.right(); }));
    }
  }
}

TEST_CASE("shared_memory_movers: a thread that looks for something else moves slices meanwhile, and leaves the rest to "
          "others") {
  using namespace std::chrono_literals;
  shared_memory_movers pool{1};
  auto job_of = [&](all_reduce_of_three& data) {
    return std::make_shared<shared_memory_job>(
      data.operation(), slice_bytes, std::vector<std::shared_ptr<mapped_memory>>{}, 2, communicator_actor{}, 1);
  };
  for (uint64_t count : {10, 1000, 5000}) {
    for (bool stays : {true, false}) {
      CAPTURE(count);
      CAPTURE(stays);
      all_reduce_of_three data{count};
      auto job = job_of(data);
      spin_until([] { return false; }, 100us); // so its thread sleeps
      CHECK(!pool.has_enough_pollers());
      uint32_t looks = 0;
      const bool came = pool.help_until(
        [&] {
          CHECK(pool.has_enough_pollers());
          if (looks++ == 0)
            pool.help_with(job); // wakes no thread
          return !stays || job->slices_moved() == job->slices();
        },
        10s);
      CHECK(came);
      CHECK(!pool.has_enough_pollers());
      CHECK(spin_until([&] { return job->slices_moved() == job->slices(); }, 10s));
      CHECK(data.right());
    }
  }
  CHECK(!pool.help_until([] { return false; }, 1us));
}

TEST_CASE("shared_memory_movers: a job is dropped when a poller finds no slice left and leaves") {
  using namespace std::chrono_literals;
  shared_memory_movers pool{1};
  spin_until([] { return false; }, 100us); // so its thread sleeps
  all_reduce_of_three data{100};
  auto job = std::make_shared<shared_memory_job>(
    data.operation(), slice_bytes, std::vector<std::shared_ptr<mapped_memory>>{}, 2, communicator_actor{}, 1);
  pool.help_until(
    [&] {
      pool.help_with(job); // wakes no thread
      while (job->move_slice(0)) {
      }
      return true;
    },
    10s);
  CHECK(spin_until([&] { return job.use_count() == 1; }, 10s));
}

TEST_CASE("shared_memory_movers: a process has one set of them, as long as it has an owner") {
  CHECK(shared_memory_movers::of_this_process() == nullptr);
  auto held = shared_memory_movers::begin_of_this_process();
  REQUIRE((held != nullptr || std::thread::hardware_concurrency() < 2));
  CHECK(shared_memory_movers::of_this_process() == held);
  CHECK(shared_memory_movers::begin_of_this_process() == held);
  held = nullptr;
  CHECK(shared_memory_movers::of_this_process() == nullptr);
}

TEST_CASE("shared_memory_movers: they end right behind a job, however their threads have come along by then") {
  all_reduce_of_three data{10};
  for (int round = 0; round < 3000; ++round) {
    auto job = std::make_shared<shared_memory_job>(
      data.operation(), slice_bytes, std::vector<std::shared_ptr<mapped_memory>>{}, 3, communicator_actor{}, 1);
    shared_memory_movers pool{2};
    pool.help_with(job);
    while (job->move_slice(0)) {
    }
  }
  CHECK(data.right());
}

TEST_CASE("shared_memory_movers: it ends with jobs that no thread has started") {
  all_reduce_of_three data{10};
  auto job = std::make_shared<shared_memory_job>(
    data.operation(), slice_bytes, std::vector<std::shared_ptr<mapped_memory>>{}, 2, communicator_actor{}, 1);
  {
    shared_memory_movers pool{1};
    pool.help_with(job);
  }
  job->move_slice(0);
  CHECK(data.right());
}
