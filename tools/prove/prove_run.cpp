#include "tools/prove/prove_run.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/rank_order/rank_order.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/prove/prove_cases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace ringmaster {

namespace {

/// One algorithm in one world: what a thread does at a time.
struct proof_job {
  proof_job(size_t algorithm_index, uint32_t world, std::vector<plan_request> requests)
    : algorithm(algorithm_index), world_size(world), cases(std::move(requests)) {}

  size_t algorithm; ///< Its index in the result.
  uint32_t world_size;
  std::vector<plan_request> cases;
  uint64_t proofs = 0, declined = 0;
  std::chrono::nanoseconds time{0};
  caf::error fault, cost_fault, why_declined;
};

std::chrono::nanoseconds thread_time() {
  std::timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

uint64_t largest(const std::vector<uint64_t>& by_rank) {
  return by_rank.empty() ? 0 : *std::max_element(by_rank.begin(), by_rank.end());
}

caf::error compare_cost(const algorithm& of, const plan_request& request, const proof& found) {
  TRY(cost, cost_of(of.kind, of.name, request));
  auto elements = largest(found.elements_sent);
  auto messages = std::max(largest(found.messages_sent), largest(found.messages_received));
  if (found.rounds == cost->rounds && elements == cost->elements && messages == cost->messages)
    return {};
  return invalid(fmt::format("the schedules take {}, {} and {} at the busiest rank, but the cost says {}, {} and {}",
                             counted(found.rounds, "round"), counted(elements, "element"), counted(messages, "message"),
                             cost->rounds, cost->elements, cost->messages));
}

/// `watch` is called with the part of the job that is done.
void run(const algorithm& of, const prove_options& opts, proof_job& job, const std::function<void(double)>& watch) {
  auto start = thread_time();
  std::vector<schedule> without_chunk;
  for (size_t i = 0; i < job.cases.size(); ++i) {
    const auto& request = job.cases[i];
    auto done = [&](double part) { watch((static_cast<double>(i) + part) / static_cast<double>(job.cases.size())); };
    done(0);
    auto ranks = schedules_of(of.kind, of.name, request, opts);
    if (!ranks && opts.deterministic && plan(of.kind, of.name, request)) {
      job.fault = with_context(text_of(of.kind, request), ranks.error());
      break;
    }
    if (!ranks) { // not every algorithm supports every valid request
      if (++job.declined == 1)
        job.why_declined = with_context(text_of(of.kind, request), ranks.error());
      continue;
    }
    if (request.chunk != 0 && *ranks == without_chunk)
      continue; // the chunk makes no difference: proved already
    done(0.3);  // of planning
    auto found = prove(of.kind, request, *ranks, opts.seed, order_of(opts));
    ++job.proofs;
    if (found.fault) {
      job.fault = with_context(text_of(of.kind, request), found.fault);
      break;
    }
    if (!opts.deterministic && !job.cost_fault)
      if (const auto fault = compare_cost(of, request, found))
        job.cost_fault = with_context(text_of(of.kind, request), fault);
    if (request.chunk == 0)
      without_chunk = std::move(*ranks);
  }
  job.time = thread_time() - start;
}

caf::expected<std::vector<algorithm_proofs>> chosen_algorithms(const prove_options& opts) {
  if (opts.kind && opts.algorithm != "all")
    if (auto known = find_algorithm(*opts.kind, opts.algorithm); !known)
      return std::move(known.error());
  std::vector<algorithm_proofs> result;
  for (const auto& x : algorithms())
    if ((!opts.kind || *opts.kind == x.kind) && (opts.algorithm == "all" || opts.algorithm == x.name)
        && (!opts.deterministic || reduces(x.kind)))
      result.emplace_back().of = &x;
  if (result.empty() && opts.kind && opts.deterministic)
    return invalid(fmt::format("{} does not reduce: there is no order to prove", name_of(*opts.kind)));
  if (result.empty())
    return invalid(opts.kind ? fmt::format("there is no algorithm for {}", name_of(*opts.kind))
                             : fmt::format("no collective has an algorithm \"{}\"", opts.algorithm));
  return result;
}

/// Two worlds whose proofs take a small part of the time and predict that of the largest one.
std::set<uint32_t> sample_worlds(const std::vector<uint32_t>& worlds) {
  ensure(!worlds.empty(), "a proof has a world size");
  std::set<uint32_t> result;
  for (auto part : {4, 16})
    if (auto above = std::upper_bound(worlds.begin(), worlds.end(), worlds.back() / part); above != worlds.begin())
      result.insert(*std::prev(above));
  return result;
}

/// Estimates the times of an algorithm's jobs from those that are done.
class job_times {
public:
  void learn(uint32_t world_size, double seconds_a_case) {
    ensure(world_size > 0 && seconds_a_case >= 0, "a job takes time in a world with ranks");
    measured_[world_size] = seconds_a_case;
  }

  /// Of a case in a world of that size. The first guess: schedules of all ranks grow with the square of the world size.
  double seconds(uint32_t world_size) const {
    constexpr double first_guess_s = 2e-7, usual_power = 2;
    const double n = world_size;
    if (measured_.empty())
      return first_guess_s * n * n;
    auto near = measured_.upper_bound(world_size);
    if (near != measured_.begin())
      --near;
    auto smaller = near;
    while (smaller != measured_.begin() && 2 * smaller->first > near->first)
      --smaller;
    auto power = usual_power;
    if (2 * smaller->first <= near->first && smaller->second > 0 && near->second > 0)
      power = std::clamp(std::log(near->second / smaller->second) / std::log(1.0 * near->first / smaller->first), 1.0,
                         4.0);
    return near->second * std::pow(n / near->first, power);
  }

private:
  std::map<uint32_t, double> measured_;
};

/// Takes the jobs' results, in any order and from any thread, and reports the algorithms in order.
class proof_ledger {
public:
  proof_ledger(std::vector<algorithm_proofs>& all, std::vector<proof_job>& jobs, const prove_watch& watch)
    : all_(all), jobs_(jobs), watch_(watch), open_(all.size()), times_(all.size()), of_job_(jobs.size()),
      parts_(jobs.size()) {
    for (size_t i = 0; i < jobs.size(); ++i) {
      ++open_[jobs[i].algorithm];
      of_job_[i] = guess(i);
    }
    sum_up();
    ensure(open_.size() == times_.size() && of_job_.size() == parts_.size(),
           "each algorithm and each job has its entries");
  }

  /// `part` of the job is done.
  void reach(size_t job, double part) {
    std::lock_guard lock{mutex_};
    ensure(part >= parts_[job] && part <= 1, "a job's progress never goes back");
    done_ += of_job_[job] * (part - parts_[job]);
    parts_[job] = part;
    report();
  }

  /// The job is finished.
  void enter(size_t index) {
    const auto& job = jobs_[index];
    std::lock_guard lock{mutex_};
    const auto seconds = std::chrono::duration<double>(job.time).count();
    ensure(parts_[index] < 1, "a job is entered once");
    ensure(open_[job.algorithm] > 0, "an algorithm has no more results than jobs");
    ensure(!job.cases.empty(), "a job has cases");
    times_[job.algorithm].learn(job.world_size, seconds / static_cast<double>(job.cases.size()));
    for (size_t i = 0; i < jobs_.size(); ++i)
      if (jobs_[i].algorithm == job.algorithm && parts_[i] < 1)
        of_job_[i] = guess(i);
    of_job_[index] = seconds;
    parts_[index] = 1;
    sum_up();
    --open_[job.algorithm];
    report();
    for (; next_row_ < all_.size() && open_[next_row_] == 0; ++next_row_) {
      add_up(next_row_);
      watch_.row(all_[next_row_]);
    }
  }

private:
  double guess(size_t job) const {
    return times_[jobs_[job].algorithm].seconds(jobs_[job].world_size) * static_cast<double>(jobs_[job].cases.size());
  }

  void sum_up() {
    done_ = whole_ = 0;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      done_ += of_job_[i] * parts_[i];
      whole_ += of_job_[i];
    }
  }

  void report() { watch_.done(whole_ > 0 ? done_ / whole_ : 1); }

  /// Starts with the smallest world.
  void add_up(size_t algorithm) {
    auto& sum = all_[algorithm];
    std::vector<proof_job*> its;
    for (auto& job : jobs_)
      if (job.algorithm == algorithm)
        its.push_back(&job);
    std::ranges::sort(its, {}, &proof_job::world_size);
    for (auto* job : its) {
      sum.worlds.push_back(job->world_size);
      sum.proofs += job->proofs;
      sum.declined += job->declined;
      sum.time += job->time;
      if (!sum.fault)
        sum.fault = std::move(job->fault);
      if (!sum.why_declined)
        sum.why_declined = std::move(job->why_declined);
      if (!sum.cost_fault)
        sum.cost_fault = std::move(job->cost_fault);
    }
  }

  std::mutex mutex_;
  std::vector<algorithm_proofs>& all_;
  std::vector<proof_job>& jobs_;
  const prove_watch& watch_;
  std::vector<size_t> open_;     ///< Unfinished jobs, by algorithm.
  std::vector<job_times> times_; ///< By algorithm.
  std::vector<double> of_job_;   ///< Seconds of each job, estimated or measured.
  std::vector<double> parts_;    ///< The part of each job that is done.
  double done_ = 0, whole_ = 0;  ///< Of all jobs, seconds.
  size_t next_row_ = 0;
};

} // namespace

caf::expected<std::vector<schedule>> schedules_of(proto::CollectiveKind kind, std::string_view algorithm,
                                                  const plan_request& request, const prove_options& opts) {
  return opts.deterministic ? plan_all_in_rank_order(kind, algorithm, request) : plan_all(kind, algorithm, request);
}

addition_order order_of(const prove_options& opts) {
  return opts.deterministic ? addition_order::ranks : addition_order::any;
}

std::string text_of(proto::CollectiveKind kind, const plan_request& request) {
  auto text = counted(request.world_size, "rank");
  constexpr size_t shown_max = 36; // numbers
  if (request.counts.size() > shown_max)
    text += fmt::format(", {} uneven counts", request.counts.size());
  else if (!request.counts.empty())
    text += fmt::format(", counts {}", fmt::join(request.counts, ","));
  else if (kind != proto::BARRIER)
    text += fmt::format(", count {}", request.count);
  if (has_root(kind))
    text += fmt::format(", root {}", request.root);
  if (kind == proto::SEND_RECV)
    text += fmt::format(", peer {}", request.peer);
  if (request.chunk != 0)
    text += fmt::format(", chunk {}", request.chunk);
  if (!request.hosts.empty())
    text += fmt::format(", on hosts {}", fmt::join(request.hosts, ","));
  return text;
}

caf::expected<std::vector<algorithm_proofs>> prove_algorithms(const prove_options& opts, const prove_watch& watch) {
  auto result = chosen_algorithms(opts);
  if (!result)
    return result;
  std::vector<proof_job> jobs;
  caf::error refused;
  auto worlds = prove_worlds(opts);
  const auto samples = sample_worlds(worlds);
  for (auto sampled : {true, false}) // samples first, for estimates of the others
    for (size_t i = 0; i < result->size(); ++i)
      for (auto n = worlds.rbegin(); n != worlds.rend(); ++n) // the largest first, so that the last jobs are short
        if (samples.contains(*n) == sampled)
          if (auto cases = prove_cases(*(*result)[i].of, *n, opts, refused); !cases.empty())
            jobs.emplace_back(i, *n, std::move(cases));
  if (jobs.empty())
    return refused ? refused : invalid("there is nothing to prove");
  proof_ledger ledger{*result, jobs, watch};
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (auto i = next.fetch_add(1); i < jobs.size(); i = next.fetch_add(1)) {
      run(*(*result)[jobs[i].algorithm].of, opts, jobs[i], [&](double part) { ledger.reach(i, part); });
      ledger.enter(i);
    }
  };
  std::vector<std::jthread> threads;
  for (uint32_t i = 1; i < opts.jobs && i < jobs.size(); ++i)
    threads.emplace_back(work);
  work();
  threads.clear(); // joins
  ensure(next >= jobs.size(), "all jobs were taken");
  return result;
}

} // namespace ringmaster
