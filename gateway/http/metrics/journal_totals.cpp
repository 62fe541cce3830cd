#include "gateway/http/metrics/journal_totals.hpp"

#include "runtime/health/verdict_text.hpp"
#include "runtime/journal/record_filter.hpp"
#include "runtime/schedule/collective.hpp"

namespace ringmaster::gateway {

namespace {

double seconds_between(uint64_t started_ns, uint64_t ended_ns) {
  return ended_ns > started_ns ? static_cast<double>(ended_ns - started_ns) / 1e9 : 0;
}

/// What may have noticed that a device was lost; a later version may have others.
const char* noticer(const std::string& name) {
  for (const auto* known : {"monitor", "suspicion", "memory"})
    if (name == known)
      return known;
  return "other";
}

/// Kinds of commands, likewise.
const char* command_kind(const std::string& name) {
  for (const auto* known : {"copy_in", "copy_out", "copy", "send", "receive"})
    if (name == known)
      return known;
  return "other";
}

} // namespace

void journal_totals::add(const proto::Record& record) {
  using proto::Record;
  ++records_;
  ++by_kind_[std::string{kind_of(record)}];
  switch (record.event_case()) {
    case Record::kOperationEnded: return add(record.operation_ended());
    case Record::kOperationsMet:
      mailbox_operations_ += record.operations_met().operations();
      mailbox_bytes_ += record.operations_met().bytes() * record.operations_met().world_size();
      return;
    case Record::kRankEnded: received_bytes_ += record.rank_ended().bytes_received(); return;
    case Record::kCommandEnded: return add(record.command_ended());
    case Record::kTrainingStep: return add(record.training_step());
    default: return count_membership(record);
  }
}

void journal_totals::add(const proto::OperationEnded& x) {
  auto& of = operations_[std::string{name_of(x.kind())}];
  (x.status() == gpu_sim::SUCCESS ? of.succeeded : of.failed) += 1;
  of.bytes += x.bytes() * x.world_size();
  of.retried += x.attempts() > 1 ? 1 : 0;
  if (x.started_ns() != 0)
    of.took.add(seconds_between(x.started_ns(), x.ended_ns()));
}

void journal_totals::add(const proto::CommandEnded& x) {
  auto& of = commands_[command_kind(x.kind())];
  (x.error().empty() ? of.succeeded : of.failed) += 1;
  of.bytes += x.bytes();
  if (x.started_ns() != 0)
    of.took.add(seconds_between(x.started_ns(), x.ended_ns()));
}

void journal_totals::add(const proto::TrainingStep& x) {
  ++steps_;
  steps_repeated_ += x.attempts() > 1 ? 1 : 0;
  samples_ += x.samples();
  if (x.seconds() > 0)
    step_took_.add(x.seconds());
}

void journal_totals::count_membership(const proto::Record& record) {
  using proto::Record;
  switch (record.event_case()) {
    case Record::kCoordinatorStarted: ++coordinator_starts_; return;
    case Record::kNodeJoined: ++nodes_joined_; return;
    case Record::kNodeLeft: ++(record.node_left().lost() ? nodes_.lost : nodes_.left); return;
    case Record::kDeviceJoined: ++devices_joined_; return;
    case Record::kDeviceLeft: ++devices_left_; return;
    case Record::kDeviceDied: ++devices_lost_[noticer(record.device_died().noticed_by())]; return;
    case Record::kCommunicatorCreated: ++communicators_created_; return;
    case Record::kCommunicatorDestroyed: ++communicators_destroyed_; return;
    case Record::kCommunicatorAborted: ++communicators_aborted_; return;
    case Record::kCommunicatorRefused: ++communicators_refused_; return;
    case Record::kCallsRefused: ++calls_refused_; return;
    case Record::kVerdict: ++verdicts_[record.verdict().kind()]; return;
    case Record::kFaultInjected: ++faults_; return;
    case Record::kEpochOpened:
      ++epochs_;
      reruns_ += static_cast<uint64_t>(record.epoch_opened().rerun_size());
      return;
    default: return;
  }
}

void journal_totals::write_to(metric_page& page) const {
  page.counter("ringmaster_journal_records_total", "Records of the journal that were read, by kind.");
  for (auto& [kind, count] : by_kind_)
    page.add(count, {{"kind", kind}});
  write_operations(page);
  write_membership(page);
  write_trainings(page);
}

void journal_totals::write_operations(metric_page& page) const {
  page.counter("ringmaster_operations_total", "Collective operations that have ended, by kind and outcome.");
  for (auto& [kind, x] : operations_)
    page.add(x.succeeded, {{"kind", kind}, {"outcome", "success"}})
      .add(x.failed, {{"kind", kind}, {"outcome", "failure"}});
  page.counter("ringmaster_operations_retried_total", "Operations that needed more than one attempt, by kind.");
  for (auto& [kind, x] : operations_)
    page.add(x.retried, {{"kind", kind}});
  page.counter("ringmaster_operation_input_bytes_total", "Bytes of all ranks' inputs, by kind of operation.");
  for (auto& [kind, x] : operations_)
    page.add(x.bytes, {{"kind", kind}});
  page.histogram("ringmaster_operation_duration_seconds", "From the start of an operation's last attempt to its end.");
  for (auto& [kind, x] : operations_)
    page.add(x.took, {{"kind", kind}});
  page.counter("ringmaster_mailbox_operations_total", "Operations in shared-memory mailboxes of ranks.")
    .add(mailbox_operations_);
  page.counter("ringmaster_mailbox_input_bytes_total", "Bytes of all ranks' inputs of these.").add(mailbox_bytes_);
  page.counter("ringmaster_received_bytes_total", "Bytes that ranks received from each other in operations.")
    .add(received_bytes_);
  page.counter("ringmaster_commands_total", "Copies and transfers of devices that have ended, by kind and outcome.");
  for (auto& [kind, x] : commands_)
    page.add(x.succeeded, {{"kind", kind}, {"outcome", "success"}})
      .add(x.failed, {{"kind", kind}, {"outcome", "failure"}});
  page.counter("ringmaster_command_bytes_total", "Bytes of these, by kind.");
  for (auto& [kind, x] : commands_)
    page.add(x.bytes, {{"kind", kind}});
  page.histogram("ringmaster_command_duration_seconds", "From the start of a copy or transfer to its end.");
  for (auto& [kind, x] : commands_)
    page.add(x.took, {{"kind", kind}});
}

void journal_totals::write_membership(metric_page& page) const {
  page.counter("ringmaster_epochs_opened_total", "Epochs of communicators, the first one included.").add(epochs_);
  page.counter("ringmaster_operations_rerun_total", "Operations that ran again in a new epoch.").add(reruns_);
  page.counter("ringmaster_devices_lost_total", "Devices that were lost, by what noticed it.");
  for (const auto* by : {"memory", "monitor", "other", "suspicion"}) {
    const auto found = devices_lost_.find(by);
    page.add(found == devices_lost_.end() ? uint64_t{0} : found->second, {{"noticed_by", by}});
  }
  page.counter("ringmaster_verdicts_total", "What went wrong on communicators, by kind.");
  for (int kind = proto::Verdict::Kind_MIN; kind <= proto::Verdict::Kind_MAX; ++kind) {
    const auto found = verdicts_.find(kind);
    page.add(found == verdicts_.end() ? uint64_t{0} : found->second,
             {{"kind", std::string{name_of(proto::Verdict::Kind(kind))}}});
  }
  page.counter("ringmaster_devices_joined_total", "Devices that joined.").add(devices_joined_);
  page.counter("ringmaster_devices_left_total", "Devices that left in good order.").add(devices_left_);
  page.counter("ringmaster_nodes_joined_total", "Nodes that joined.").add(nodes_joined_);
  page.counter("ringmaster_nodes_gone_total", "Nodes that have gone, by how.")
    .add(nodes_.left, {{"how", "left"}})
    .add(nodes_.lost, {{"how", "lost"}});
  page.counter("ringmaster_communicators_created_total", "Communicators that were created.")
    .add(communicators_created_);
  page.counter("ringmaster_communicators_destroyed_total", "Communicators that were destroyed.")
    .add(communicators_destroyed_);
  page.counter("ringmaster_communicators_aborted_total", "Communicators that were aborted.")
    .add(communicators_aborted_);
  page.counter("ringmaster_communicators_refused_total", "Communicators that could not be created.")
    .add(communicators_refused_);
  page.counter("ringmaster_calls_refused_total", "Calls of ranks that did not match.").add(calls_refused_);
  page.counter("ringmaster_faults_injected_total", "Faults that were injected on purpose.").add(faults_);
  page.counter("ringmaster_coordinator_starts_total", "Starts of the coordinator.").add(coordinator_starts_);
}

void journal_totals::write_trainings(metric_page& page) const {
  page.counter("ringmaster_training_steps_total", "Committed steps of all trainings.").add(steps_);
  page.counter("ringmaster_training_steps_repeated_total", "Steps that needed more than one attempt.")
    .add(steps_repeated_);
  page.counter("ringmaster_training_samples_total", "Samples of committed steps.").add(samples_);
  page.histogram("ringmaster_training_step_duration_seconds", "Duration of a step with all of its attempts.")
    .add(step_took_);
}

} // namespace ringmaster::gateway
