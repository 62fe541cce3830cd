#pragma once

#include "tests/programs/soak_cluster.hpp"
#include "tests/programs/soak_connection.hpp"
#include "tests/support/histories/client_history.hpp"
#include "tests/support/trials/collective_expectation.hpp"

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace ringmaster::soak {

struct tally {
  uint64_t right = 0, refused = 0, wrong = 0, hung = 0;
  uint64_t unjudged = 0;   ///< Operations of which it is not known whether they were right: none of the others.
  uint64_t reconnects = 0; ///< The coordinator was lost, and found again.
  std::map<std::string, uint64_t> why_unjudged; ///< Reasons, without numbers.
  std::set<proto::CollectiveKind> kinds;        ///< Of which one was right.
  std::map<std::string, uint64_t> reasons;      ///< Of refusals, without numbers.
  std::vector<double> recoveries_s;             ///< From an event to the end of the operation that it met.
  double longest_s = 0;                         ///< Of a call.
  uint64_t reran = 0;                           ///< Calls during which an epoch was opened.
  double longest_gap_s = 0;                     ///< Between the ends of two operations that were right.
};

/// What runs while a cluster is ill-treated: collectives of every kind, in and out of place, by any algorithm, over all
/// devices that are there, each waited for or a few called together. Each is right over the ranks that its answer
/// names, or is refused with its reason.
class soak_work {
public:
  /// `elements`: of the sizes that are drawn.
  soak_work(soak_connection& connection, soak_cluster& cluster, uint64_t seed, std::vector<uint64_t> elements)
    : connection_(connection), cluster_(cluster), random_(seed), elements_(std::move(elements)) {}

  /// Some operations on a communicator of all devices that are free.
  void round();
  const tally& so_far() const { return result_; }
  /// What no order of the calls explains so far; empty: nothing. Asks the cluster which communicators it has.
  test::client_history::judgement judge_history();

private:
  using members = gpu_sim::GetCommStatusResponse;

  /// An operation, and the place of its region in every rank's memory.
  struct planned {
    test::collective_options what;
    test::collective_expectation expected;
    uint64_t at = 0;
    proto::CollectiveRequest request = {};
    size_t call = 0; ///< In the history.
  };

  template <class Call>
  auto timed(Call call);

  test::collective_options draw(uint32_t ranks);
  /// Whether the communicator can go on.
  bool run(communicator_id id, proto::FailurePolicy policy);
  /// One, or a few.
  std::vector<planned> draw_together(uint32_t ranks);
  /// Fills the ranks' regions, and makes the request.
  caf::error prepare(communicator_id communicator, const members& then, planned& x);
  caf::error call(std::vector<planned>& together);
  /// As a call of the history says it.
  static uint64_t now_ns();
  /// The answer to a call of the history. Returns whether it is one: else it is not known whether it happened.
  bool answered(size_t call, const caf::error& problem);
  /// A communicator may have ended by itself: all of its members were lost, or its client was.
  void note_end(communicator_id id, proto::FailurePolicy policy);
  void judge(const members& now, const members& then, proto::FailurePolicy policy, const planned& x,
             const std::string& which);
  void refuse(const caf::error& why);
  /// The outcome of an operation is not known.
  void cannot_judge(const std::string& why);
  client& host() { return connection_.host(); }

  soak_connection& connection_;
  soak_cluster& cluster_;
  std::mt19937_64 random_;
  std::vector<uint64_t> elements_;
  uint64_t drawn_ = 0;
  test::client_history history_;
  std::map<uint64_t, size_t> made_; ///< Calls that have made the communicators that are not destroyed.
  std::set<uint64_t> members_;      ///< Of the present communicator, as far as is known.
  uint64_t operations_ = 0;
  steady::time_point latest_right_ = steady::now();
  tally result_;
};

} // namespace ringmaster::soak
