#pragma once

#include "diagnosis/records/interned_texts.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::diagnosis {

/// How far a call has come on its rank.
enum class call_state : uint8_t {
  scheduled, ///< The program has called it; its kernel has not started, as far as the record says.
  started,   ///< Its kernel runs.
  completed
};
std::string_view name_of(call_state x);

enum class call_form : uint8_t {
  collective,
  send,
  receive,
  batch,   ///< The end of a group of sends and receives that run as one.
  part,    ///< One of several collectives that run as one, the next "coalesced" one.
  creation ///< Of a communicator; its sequence is 0.
};

/// What a call works on. Two calls can match if their element counts and types do.
struct call_shape {
  text_id input_sizes = 0, output_sizes = 0; ///< "[[1024, 8]]"
  text_id input_types = 0, output_types = 0; ///< "Float", several separated by commas
  uint64_t input_elements = 0, output_elements = 0;

  friend bool operator==(const call_shape&, const call_shape&) = default;
};

struct stack_frame {
  text_id function = 0, file = 0;
  uint32_t line = 0;

  friend bool operator==(const stack_frame&, const stack_frame&) = default;
};

/// Innermost frame first.
using call_stack = std::vector<stack_frame>;

/// One call of one rank, in 64 bytes, since a job has millions. Times are nanoseconds of Unix time, 0: unknown.
struct rank_call {
  static constexpr uint32_t no_peer = UINT32_MAX, no_root = UINT32_MAX;

  uint64_t sequence = 0; ///< Of collectives: by process group, from 1, the same on all ranks.
  int64_t created_ns = 0, started_ns = 0, completed_ns = 0;
  uint32_t group = 0;      ///< Index in job_records::groups.
  text_id name = 0;        ///< "all_reduce", "send"
  uint32_t shape = 0;      ///< Index in job_records::shapes.
  uint32_t stack = 0;      ///< Index in job_records::stacks; 0: unknown.
  uint32_t peer = no_peer; ///< Of send and receive: index in the group.
  uint32_t root = no_root; ///< Where the record names it: index in the group.
  call_state state = call_state::scheduled;
  call_form form = call_form::collective;
};

/// Ranks that have collectives together.
struct process_group {
  std::string name;              ///< "0", or a hash
  std::string description;       ///< "default_pg", "tensor parallel"; may be empty
  std::vector<uint32_t> members; ///< Global ranks by index in the group; empty: unknown.

  friend bool operator==(const process_group&, const process_group&) = default;
};

/// The numbers of a group's latest collectives on one rank, as the rank's status or watchdog reports them.
struct group_progress {
  uint32_t group = 0;
  int64_t enqueued = -1, started = -1, completed = -1; ///< -1: unknown.
};

/// Something that a log or status says of a rank.
struct rank_note {
  enum class kind : uint8_t {
    died,     ///< Its process has exited or is considered dead.
    lost,     ///< It does not answer.
    hung,     ///< It was found to hang, by our own failure detector.
    failed,   ///< It reported an error of communication.
    timed_out ///< Its watchdog gave a collective up.
  };
  kind what = kind::failed;
  std::string text;   ///< What the source says, in one line.
  std::string source; ///< "worker.log, line 17"
};

/// The stack of one thread of a rank's process at the time of the hang.
struct thread_stack {
  std::string thread; ///< "MainThread"
  uint32_t stack = 0; ///< Index in job_records::stacks.
  bool is_main = false;
  std::string source;
};

struct rank_records {
  uint32_t rank = 0;
  std::string host; ///< Empty: unknown.
  std::optional<uint64_t> pid;
  std::vector<std::string> sources; ///< Files that have its calls.
  bool has_calls = false;           ///< There is a complete record of its latest calls.
  bool reports_starts = false;      ///< Its record tells started kernels from scheduled ones.
  bool wrapped = false;             ///< Its ring has overwritten the oldest calls.
  int64_t dumped_ns = 0;            ///< When its record was written; 0: unknown.
  int64_t waited_ns = 0;            ///< At least that long it waited in a call that its watchdog gave up.
  std::vector<rank_call> calls;     ///< In the order in which it made them.
  std::vector<group_progress> progress;
  std::vector<thread_stack> threads;
  std::vector<rank_note> notes;
};

/// What is known of a job. Ranks are those that have any record; a group may name others.
struct job_records {
  interned_texts texts;
  std::vector<call_shape> shapes{1};
  std::vector<call_stack> stacks{1};
  std::vector<process_group> groups;
  std::vector<rank_records> ranks;  ///< By rank, ascending.
  std::vector<std::string> remarks; ///< Of the reading: files that were left out, ranks that were guessed.

  const rank_records* find(uint32_t rank) const;
  rank_records* find(uint32_t rank);
  /// "\"tensor parallel\" (7)": the group for people.
  std::string name_of_group(uint32_t group) const;
  /// "all_reduce 17 of \"dp\""
  std::string name_of_call(const rank_call& call) const;
  /// "train (model.py:17)"
  std::string text_of(const stack_frame& frame) const;
  /// The latest time that any record has, the time of the record included; 0: none.
  int64_t latest_ns() const;
  /// Index in `groups` of an equal group, which is added if there is none.
  uint32_t group_of(process_group x);

private:
  std::multimap<std::string, uint32_t> groups_by_name_;
};

/// "12 ranks: 0-9, 12, 14"; without the count "0-9, 12, 14".
std::string list_of_ranks(const std::vector<uint32_t>& ascending);
/// "rank 3", "ranks 3-5 and 7"
std::string ranks_text(const std::vector<uint32_t>& ascending);
/// "2026-01-01 12:00:00.250 UTC"
std::string time_text(int64_t unix_ns);

} // namespace ringmaster::diagnosis
