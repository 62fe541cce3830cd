#pragma once

#include "tests/support/histories/client_history.hpp"
#include "tests/support/nodes/simulated_nodes.hpp"

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace ringmaster::test {

/// A client beside the test's own that always has a call in flight whatever happens to the cluster: it asks for the
/// status of a communicator, makes and destroys others on its devices, and allocates, writes, copies, reads and frees
/// memory of these. Each of these calls may have arrived at a coordinator that then ends or is replaced, so the
/// client's proxy sends it again; where one is carried out twice, an answer or what is read next is wrong.
class busy_client {
public:
  /// `used`: of each device's memory, for others. Runs until that is allocated. The calls go into the history.
  busy_client(simulated_nodes& cluster, const gpu_sim::CommInitResponse& comm, uint64_t used, client_history& history);

  /// Makes no more calls. Runs until the last one is answered, or for so long.
  void finish(caf::timespan limit);
  /// Lets its actor end. To be called before the cluster ends, and this is destroyed after it.
  void stop();
  /// What was wrong with an answer; empty: nothing.
  const std::string& problem() const { return problem_; }
  uint64_t calls() const { return calls_; }

private:
  /// Asks, and goes on.
  template <class Response, class Then, class... Xs>
  void ask(Then then, Xs&&... xs);
  /// Whether the answer is a success. One that fails ends the round, with a reason.
  template <class Response>
  bool is_well(const Response& x);
  void next_round();
  void start_round();
  void ask_status();
  void make();
  void destroy(uint64_t communicator);
  void allocate(bool first);
  void write(uint64_t value, void (busy_client::*then)());
  void write_first() { write(++values_, &busy_client::copy); }
  void copy();
  void read();
  void free(bool first);
  void note(std::string problem);

  simulated_nodes& cluster_;
  const uint64_t comm_;
  std::vector<uint64_t> devices_;
  client_history& history_;
  std::mt19937_64 random_;
  caf::actor actor_;
  caf::event_based_actor* self_ = nullptr;
  bool ends_ = false, is_idle_ = false;
  std::string problem_;
  uint64_t rounds_ = 0, calls_ = 0, values_ = 0;
  uint64_t device_ = 0, from_ = 0, to_ = 0;          ///< Of this round.
  std::map<uint64_t, std::set<uint64_t>> allocated_; ///< By device.
};

} // namespace ringmaster::test
