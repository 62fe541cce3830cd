#pragma once

#include "gateway/http/metrics/metric_page.hpp"
#include "messages/journal.pb.h"

#include <cstdint>
#include <map>
#include <string>

namespace ringmaster::gateway {

/// Counts what the records of the journal say. The counts are a function of the records alone, so they are the same
/// after this program was started again. Names that clients choose are no labels: they would make any number of series.
class journal_totals {
public:
  void add(const proto::Record& record);
  void write_to(metric_page& page) const;

  uint64_t records() const { return records_; }

private:
  struct outcomes {
    uint64_t succeeded = 0;
    uint64_t failed = 0;
    uint64_t bytes = 0;
    uint64_t retried = 0; ///< That needed more than one attempt.
    duration_histogram took;
  };
  struct departures {
    uint64_t left = 0;
    uint64_t lost = 0;
  };

  void add(const proto::OperationEnded& x);
  void add(const proto::CommandEnded& x);
  void add(const proto::TrainingStep& x);
  void count_membership(const proto::Record& record);
  void write_operations(metric_page& page) const;
  void write_membership(metric_page& page) const;
  void write_trainings(metric_page& page) const;

  uint64_t records_ = 0;
  std::map<std::string, uint64_t> by_kind_;
  std::map<std::string, outcomes> operations_; ///< By kind.
  std::map<std::string, outcomes> commands_;   ///< By kind.
  uint64_t mailbox_operations_ = 0, mailbox_bytes_ = 0, received_bytes_ = 0;
  std::map<std::string, uint64_t> devices_lost_; ///< By what noticed it.
  std::map<int, uint64_t> verdicts_;             ///< By kind.
  uint64_t devices_joined_ = 0, devices_left_ = 0, nodes_joined_ = 0;
  departures nodes_;
  uint64_t communicators_created_ = 0, communicators_destroyed_ = 0, communicators_aborted_ = 0;
  uint64_t communicators_refused_ = 0, calls_refused_ = 0, epochs_ = 0, reruns_ = 0, faults_ = 0;
  uint64_t coordinator_starts_ = 0;
  uint64_t steps_ = 0, steps_repeated_ = 0, samples_ = 0;
  duration_histogram step_took_;
};

} // namespace ringmaster::gateway
