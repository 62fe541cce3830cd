#include "runtime/journal/record_text.hpp"

#include "messages/message_json.hpp"
#include "runtime/health/slow_devices.hpp"
#include "runtime/health/verdict_text.hpp"
#include "runtime/journal/record_bytes.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/text/utf8.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <fmt/ranges.h>

#include <ctime>
#include <string_view>
#include <vector>

namespace ringmaster {
namespace {

using proto::Record;

// A line stays one, and no terminal obeys what a record says.
std::string plain(std::string_view text) {
  std::string result;
  for (auto c : text) {
    if (c == '\n')
      result += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result;
}

// ": cause", or nothing where there is none.
std::string because(std::string_view text) {
  return text.empty() ? "" : ": " + plain(text);
}

/// A start of 0 is none: what was given up in a queue never started.
std::string span_text(uint64_t started_ns, uint64_t ended_ns) {
  return started_ns == 0 || ended_ns < started_ns ? "unknown time" : duration_text(ended_ns - started_ns);
}

/// ", sum": of collectives that reduce.
std::string reduction_text(const proto::Collective& x) {
  if (x.kind() != proto::ALL_REDUCE && x.kind() != proto::REDUCE && x.kind() != proto::REDUCE_SCATTER)
    return "";
  return ", " + (x.op() == gpu_sim::USER ? plain(x.user_op()) : std::string{name_of(x.op())});
}

template <class Ids>
std::string ranks(const Ids& devices) {
  std::vector<std::string> texts;
  for (auto id : devices)
    texts.push_back(fmt::format("{:#x}", id));
  return fmt::format("{} rank{} on device{} {}", texts.size(), texts.size() == 1 ? "" : "s",
                     texts.size() == 1 ? "" : "s", fmt::join(texts, " "));
}

std::string operation_words(uint64_t communicator, uint64_t sequence) {
  return fmt::format("communicator {} operation {}", communicator, sequence);
}

// A node's name is its identity, for the launcher as in the log.
template <class NodeRecord>
std::string node_text(const NodeRecord& x) {
  return x.name().empty() ? fmt::format("node {}", x.node_id()) : "node " + plain(x.name());
}

std::string text(const proto::DeviceJoined& x) {
  auto& m = x.metadata();
  auto min = m.minmemaddr().value(), max = m.maxmemaddr().value();
  auto node = x.node_name().empty() ? std::to_string(x.node_id()) : plain(x.node_name());
  return fmt::format("device {:#x} joined on node {}, {} at [{:#x}, {:#x})", m.deviceid().value(), node,
                     bytes_text(max < min ? 0 : max - min), min, max);
}

std::string text(const proto::DeviceDied& x) {
  return fmt::format("device {:#x} died{}{}", x.device_id(), because(x.cause()),
                     x.noticed_by().empty() ? "" : fmt::format(" (noticed by {})", plain(x.noticed_by())));
}

std::string text(const proto::DeviceSlow& x) {
  return fmt::format("communicator {}: device {:#x} is {}", x.comm_id(), x.device_id(),
                     x.has_ended() ? "slow no longer" : ringmaster::text_of(x.slowness()));
}

std::string text(const proto::CommunicatorCreated& x) {
  return fmt::format("communicator {}{} created, {}, policy {}{}", x.comm_id(),
                     x.name().empty() ? "" : fmt::format(" ({})", x.name()), ranks(x.device_ids()),
                     lower_case(proto::FailurePolicy_Name(x.policy())), x.deterministic() ? ", deterministic" : "");
}

std::string text(const proto::CommunicatorRefused& x) {
  std::string what;
  if (x.parent_id() != 0)
    what = fmt::format(" from communicator {}", x.parent_id());
  else if (!x.device_ids().empty())
    what = fmt::format(" of device{} {:#x}", x.device_ids_size() == 1 ? "" : "s", fmt::join(x.device_ids(), " "));
  else
    what = " of " + counted(x.devices(), "device");
  return fmt::format("{}{}{} refused{}", plain(x.call()), what,
                     x.name().empty() ? "" : fmt::format(" ({})", plain(x.name())), because(x.reason()));
}

std::string text(const proto::EpochOpened& x) {
  auto rerun = x.rerun().empty() ? "" : fmt::format("; runs again: operation {}", fmt::join(x.rerun(), ", "));
  return fmt::format("communicator {} epoch {} opened, {}{}{}", x.comm_id(), x.epoch(), ranks(x.device_ids()),
                     because(x.reason()), rerun);
}

std::string text(const proto::OperationEnqueued& x) {
  return fmt::format("{} enqueued: {}", operation_words(x.request().comm_id(), x.sequence()), call_text(x));
}

std::string text(const proto::RankReport& x) {
  auto where = fmt::format("{} epoch {}: rank {} (device {:#x})", operation_words(x.comm_id(), x.sequence()), x.epoch(),
                           x.rank(), x.device_id());
  auto phase = lower_case(proto::RankReport::Phase_Name(x.phase()));
  auto took = span_text(x.started_ns(), x.ended_ns());
  if (x.phase() == proto::RankReport::BROKEN)
    return fmt::format("{} broke {}{}", where, x.started_ns() == 0 ? "before it started" : "after " + took,
                       because(x.error()));
  if (x.started_ns() == 0)
    return fmt::format("{} {} before it started", where, phase);
  return fmt::format("{} {} {} {}, received {}", where, phase,
                     x.phase() == proto::RankReport::INTERRUPTED ? "after" : "in", took,
                     bytes_text(x.bytes_received()));
}

std::string text(const proto::OperationEnded& x, std::optional<uint64_t> ranks_took_ns) {
  auto where = operation_words(x.comm_id(), x.sequence());
  auto what = fmt::format(
    "{} {} over {}, {} a rank, {}{}", plain(x.algorithm()), lower_case(proto::CollectiveKind_Name(x.kind())),
    counted(x.world_size(), "rank"), bytes_text(x.bytes()),
    span_text(x.started_ns(), x.ended_ns())
      + (ranks_took_ns ? fmt::format(", of that its ranks took {}", duration_text(*ranks_took_ns)) : ""),
    x.attempts() > 1 ? fmt::format(", attempt {}", x.attempts()) : "");
  if (x.status() == gpu_sim::FAILED)
    return fmt::format("{} failed in epoch {}{} ({})", where, x.epoch(), because(x.error()), what);
  return fmt::format("{} {} in epoch {}: {}", where, x.status() == gpu_sim::SUCCESS ? "succeeded" : "ended undecided",
                     x.epoch(), what);
}

std::string text(const proto::CommandEnded& x) {
  auto where = x.stream_id() == 0
                 ? fmt::format("device {:#x}", x.device_id())
                 : fmt::format("device {:#x} stream {}", x.device_id(), number_on_device(stream_id{x.stream_id()}));
  auto took = span_text(x.started_ns(), x.ended_ns());
  if (!x.error().empty())
    return fmt::format("{}: {} of {} failed {}{}", where, plain(x.kind()), bytes_text(x.bytes()),
                       x.started_ns() == 0 ? "before it started" : "after " + took, because(x.error()));
  return fmt::format("{}: {} of {} in {}", where, plain(x.kind()), bytes_text(x.bytes()), took);
}

std::string text(const proto::TrainingStep& x) {
  return fmt::format("training {} by {}: step {} over {}, samples {} to {} of epoch {}, loss {:.4f}{}",
                     training_name(x.run()), x.strategy(), x.step(),
                     counted(static_cast<uint64_t>(x.device_ids_size()), "rank"), x.first_sample(),
                     x.first_sample() + std::max<uint64_t>(x.samples(), 1) - 1, x.epoch(), x.loss(),
                     x.attempts() > 1 ? fmt::format(", at attempt {}", x.attempts()) : "");
}

std::string text(const proto::Audit& x) {
  const auto who = fmt::format("{}{}{} at {}", plain(x.role()), x.name().empty() ? "" : " ", plain(x.name()),
                               x.address().empty() ? "an address that is no longer known" : plain(x.address()));
  return fmt::format("{} {}{}{}", who, plain(x.action()), because(x.refused()),
                     x.unrecorded() == 0 ? "" : fmt::format(" ({} more were refused)", x.unrecorded()));
}

std::string text(const proto::NodeClock& x) {
  if (x.error_ns() == 0 && x.offset_ns() == 0)
    return fmt::format("node {} has the coordinator's clock", x.node_id());
  return fmt::format("the clock of node {} is {} {} the coordinator's, give or take {}", x.node_id(),
                     duration_text(static_cast<uint64_t>(std::abs(x.offset_ns()))),
                     x.offset_ns() < 0 ? "behind" : "before", duration_text(x.error_ns()));
}

std::string event_text(const Record& record, const record_text_options& opts) {
  switch (record.event_case()) {
    case Record::kCoordinatorStarted:
      return fmt::format("coordinator started, process {}", record.coordinator_started().pid());
    case Record::kIdsReserved: {
      auto& x = record.ids_reserved();
      return fmt::format("ids are reserved up to node {}, device {:#x} and communicator {}", x.node_id(), x.device_id(),
                         x.comm_id());
    }
    case Record::kNodeJoined: {
      auto& x = record.node_joined();
      return fmt::format("{} joined, process {}{}", node_text(x), x.pid(),
                         x.host().empty() ? "" : " on " + plain(x.host()));
    }
    case Record::kNodeLeft: {
      auto& x = record.node_left();
      return fmt::format("{} {}{}", node_text(x), x.lost() ? "was lost" : "left", because(x.cause()));
    }
    case Record::kNodeClock: return text(record.node_clock());
    case Record::kDeviceJoined: return text(record.device_joined());
    case Record::kDeviceLeft:
      return fmt::format("device {:#x} left{}", record.device_left().device_id(),
                         because(record.device_left().cause()));
    case Record::kDeviceDied: return text(record.device_died());
    case Record::kDeviceSlow: return text(record.device_slow());
    case Record::kCommunicatorCreated: return text(record.communicator_created());
    case Record::kEpochOpened: return text(record.epoch_opened());
    case Record::kCommunicatorAborted: {
      auto& x = record.communicator_aborted();
      return fmt::format("communicator {} aborted{}", x.comm_id(), because(x.reason()));
    }
    case Record::kCommunicatorDestroyed: {
      auto& x = record.communicator_destroyed();
      return fmt::format("communicator {} destroyed{}", x.comm_id(), because(x.reason()));
    }
    case Record::kOperationEnqueued: return text(record.operation_enqueued());
    case Record::kOperationStarted: {
      auto& x = record.operation_started();
      return fmt::format("{} started in epoch {} over {}", operation_words(x.comm_id(), x.sequence()), x.epoch(),
                         counted(x.world_size(), "rank"));
    }
    case Record::kRankEnded: return text(record.rank_ended());
    case Record::kOperationEnded: return text(record.operation_ended(), opts.ranks_took_ns);
    case Record::kInputCheckpoint: {
      auto& x = record.input_checkpoint();
      return fmt::format("{}: the host keeps the input of device {:#x}, {} at {:#x}",
                         operation_words(x.comm_id(), x.sequence()), x.device_id(), bytes_text(x.bytes()), x.address());
    }
    case Record::kCallsRefused:
      return fmt::format("communicator {} refused its ranks' calls{}", record.calls_refused().comm_id(),
                         because(record.calls_refused().reason()));
    case Record::kCommunicatorRefused: return text(record.communicator_refused());
    case Record::kOperationsMet: {
      auto& x = record.operations_met();
      auto took = x.ended_ns() > x.started_ns() ? x.ended_ns() - x.started_ns() : 0;
      return fmt::format("communicator {}: {} met in memory for {} within {}, {} a rank in all", x.comm_id(),
                         counted(x.world_size(), "rank"), counted(x.operations(), "operation"), duration_text(took),
                         bytes_text(x.bytes()));
    }
    case Record::kCommandEnded: return text(record.command_ended());
    case Record::kFaultInjected:
      return fmt::format("device {:#x}: fault on purpose{}", record.fault_injected().device_id(),
                         because(record.fault_injected().what()));
    case Record::kTrainingStep: return text(record.training_step());
    case Record::kAudit: return text(record.audit());
    case Record::kVerdict:
      return fmt::format("communicator {}: {}", record.verdict().comm_id(),
                         plain(ringmaster::text_of(record.verdict())));
    case Record::EVENT_NOT_SET: break;
  }
  return "an event that a later version wrote";
}

std::tm calendar(const Record& record, std::chrono::seconds utc_offset) {
  auto seconds = static_cast<std::time_t>(record.time_ns() / 1'000'000'000) + utc_offset.count();
  std::tm result{};
  ::gmtime_r(&seconds, &result);
  return result;
}

std::string time_text(const Record& record, const record_text_options& opts) {
  if (opts.relative_to_ns) {
    auto base = *opts.relative_to_ns;
    auto earlier = record.time_ns() < base;
    auto ms = (earlier ? base - record.time_ns() : record.time_ns() - base) / 1'000'000;
    return fmt::format("{:>12}", fmt::format("{}{}.{:03} s", earlier ? '-' : '+', ms / 1000, ms % 1000));
  }
  return fmt::format("{:%H:%M:%S}.{:03}", calendar(record, opts.utc_offset), record.time_ns() / 1'000'000 % 1000);
}

} // namespace

std::string time_of(const Record& record, std::chrono::seconds utc_offset) {
  return time_text(record, {.relative_to_ns = {}, .utc_offset = utc_offset, .ranks_took_ns = {}});
}

std::string call_text(const proto::OperationEnqueued& x) {
  auto& r = x.request().collective();
  return fmt::format("{} {} of {} {}{}, {} a rank", plain(r.algorithm()),
                     lower_case(proto::CollectiveKind_Name(r.kind())), r.count(), name_of(r.datatype()),
                     reduction_text(r), bytes_text(x.bytes()));
}

std::string training_name(uint64_t run) {
  constexpr uint64_t short_enough = 1'000'000;
  if (run < short_enough)
    return std::to_string(run);
  constexpr uint64_t golden_ratio = 0x9E3779B97F4A7C15; // Fibonacci hashing: neighbours get names that differ
  return fmt::format("{:06x}", run * golden_ratio >> 40);
}

std::string text_of(const Record& record, const record_text_options& opts) {
  return fmt::format("{}  {}", time_text(record, opts), event_text(record, opts));
}

std::string sentence_of(const Record& record) {
  return event_text(record, {});
}

std::string day_of(const Record& record, std::chrono::seconds utc_offset) {
  return fmt::format("{:%Y-%m-%d}", calendar(record, utc_offset));
}

tone tone_of(const Record& record) {
  switch (record.event_case()) {
    case Record::kCommunicatorAborted:
    case Record::kCallsRefused:
    case Record::kCommunicatorRefused:
    case Record::kVerdict:
    case Record::kDeviceDied: return tone::bad;
    case Record::kEpochOpened: return record.epoch_opened().epoch() > 1 ? tone::warning : tone::plain;
    case Record::kDeviceSlow: return record.device_slow().has_ended() ? tone::plain : tone::warning;
    case Record::kNodeLeft:
    case Record::kFaultInjected: return tone::warning;
    case Record::kAudit: return record.audit().refused().empty() ? tone::plain : tone::warning;
    case Record::kRankEnded: return record.rank_ended().phase() == proto::RankReport::BROKEN ? tone::bad : tone::plain;
    case Record::kCommandEnded: return record.command_ended().error().empty() ? tone::plain : tone::bad;
    case Record::kOperationEnded: return record.operation_ended().status() == gpu_sim::SUCCESS ? tone::good : tone::bad;
    default: return tone::plain;
  }
}

std::string json_of(const Record& record) {
  Record readable; // text that is not UTF-8 has no JSON
  readable.ParseFromString(record_bytes(record));
  auto json = json_of_message(readable);
  return json == "{}" ? fmt::format("{{\"time_ns\":\"{}\"}}", record.time_ns()) : json;
}

} // namespace ringmaster
