#include "diagnosis/readers/flight_recorder_dump.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

namespace ringmaster::diagnosis {

namespace {

using kind = dump_value::kind;

constexpr size_t entries_max = 4'000'000, tensors_max = 1 << 16, frames_max = 4096;
/// Values share lists, so a small file can describe a huge dump: reading stops at this multiple of the file's size.
constexpr size_t growth_max = 64, growth_free = 1 << 20;

/// Fields of an entry. Their names are interned first, so that a field's number is the id of its name.
enum field : uint32_t {
  no_field,
  frames,
  record_id,
  pg_id,
  process_group_field,
  collective_seq_id,
  p2p_seq_id,
  seq_id,
  profiling_name,
  time_created_ns,
  input_sizes,
  input_dtypes,
  output_sizes,
  output_dtypes,
  state,
  time_started,
  time_completed,
  is_p2p,
  root,
  retired,
  timeout_ms,
  fields_end,
  scheduled_word = fields_end,
  started_word,
  completed_word
};
constexpr std::array<std::string_view, completed_word + 1> words{"",
                                                                 "frames",
                                                                 "record_id",
                                                                 "pg_id",
                                                                 "process_group",
                                                                 "collective_seq_id",
                                                                 "p2p_seq_id",
                                                                 "seq_id",
                                                                 "profiling_name",
                                                                 "time_created_ns",
                                                                 "input_sizes",
                                                                 "input_dtypes",
                                                                 "output_sizes",
                                                                 "output_dtypes",
                                                                 "state",
                                                                 "time_discovered_started_ns",
                                                                 "time_discovered_completed_ns",
                                                                 "is_p2p",
                                                                 "root",
                                                                 "retired",
                                                                 "timeout_ms",
                                                                 "scheduled",
                                                                 "started",
                                                                 "completed"};

struct text_hash {
  using is_transparent = void;
  size_t operator()(std::string_view x) const { return std::hash<std::string_view>{}(x); }
};
/// Numbers of what was read before, by the bytes that identify it.
using known_bytes = std::unordered_map<std::string, uint32_t, text_hash, std::equal_to<>>;

/// "[0, 1, 2]" or a list of numbers.
std::vector<uint32_t> ranks_of(const dump_tree& tree, dump_value x) {
  std::vector<uint32_t> result;
  if (x.type == kind::list) {
    for (auto each : tree.entries(x))
      if (each.type == kind::integer && each.integer >= 0 && each.integer < UINT32_MAX)
        result.push_back(static_cast<uint32_t>(each.integer));
  } else if (x.type == kind::text) {
    auto text = tree.text(x);
    for (size_t i = 0; i < text.size();) {
      uint32_t rank = 0;
      auto [end, problem] = std::from_chars(text.data() + i, text.data() + text.size(), rank);
      if (problem == std::errc{})
        result.push_back(rank);
      i = std::max(i + 1, static_cast<size_t>(end - text.data()));
    }
  }
  return result;
}

/// A number, or a text with one as in the JSON form.
std::optional<int64_t> number_of(const dump_tree& tree, std::optional<dump_value> x) {
  if (!x)
    return {};
  if (x->type == kind::integer || x->type == kind::boolean)
    return x->integer;
  if (x->type != kind::text)
    return {};
  auto text = tree.text(*x);
  int64_t result = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), result);
  return problem == std::errc{} && end == text.data() + text.size() ? std::optional{result} : std::nullopt;
}

std::string text_or(const dump_tree& tree, std::optional<dump_value> x, std::string_view other) {
  return std::string{x && x->type == kind::text ? tree.text(*x) : other};
}

class dump_reader {
public:
  dump_reader(parsed_dump& dump, file_evidence& to)
    : tree_(dump.tree), root_(dump.root), to_(to), part_(to.part), work_left_(growth_max * dump.bytes + growth_free) {
    for (auto word : words)
      part_.texts.of(word);
  }

  caf::error read();

private:
  using entry_fields = std::array<dump_value, fields_end>;

  /// What a profiling_name says: "nccl:send 1->2".
  struct parsed_name {
    text_id name = 0;
    call_form form = call_form::collective;
    uint32_t own = rank_call::no_peer, peer = rank_call::no_peer;
    bool known = false;
  };
  /// A group as entries name it.
  struct named_group {
    text_id name = 0, description = 0;
    uint32_t index = 0;
  };

  text_id id_of(dump_value text) {
    auto& tag = tree_.tag(text);
    if (tag == 0)
      tag = part_.texts.of(tree_.text(text)) + 1;
    return tag - 1;
  }
  void read_groups();
  void read_progress();
  caf::error read_entry(size_t index, dump_value entry);
  const parsed_name& name_of_entry(text_id profiling);
  parsed_name parse_name(std::string_view profiling);
  uint32_t group_of_entry(const entry_fields& fields);
  uint32_t shape_of_entry(const entry_fields& fields);
  text_id sizes_text(dump_value sizes, uint64_t& elements);
  text_id types_text(dump_value types);
  void add_key(dump_value nested, uint32_t depth);
  uint32_t stack_of(dump_value list);
  uint32_t frame_of(dump_value map);
  void settle_batches();
  void settle_states();

  dump_tree& tree_;
  dump_value root_;
  file_evidence& to_;
  job_records& part_;
  rank_records rank_;
  std::vector<parsed_name> names_;
  std::vector<named_group> groups_;
  std::map<int64_t, uint32_t> groups_by_pg_id_;
  std::vector<uint64_t> batch_keys_; ///< Of each call: the number that a batch's members share.
  std::vector<bool> is_p2p_;
  size_t work_left_;
  std::string key_;
  known_bytes shapes_, stacks_;
  std::vector<uint32_t> frames_of_maps_; ///< By container; 0: not read yet.
  call_stack frames_{1};
};

dump_reader::parsed_name dump_reader::parse_name(std::string_view profiling) {
  parsed_name result;
  result.known = true;
  auto name = profiling.substr(profiling.find(':') + 1); // npos + 1 is 0
  auto blank = name.find(' ');
  auto op = name.substr(0, blank);
  result.name = part_.texts.of(op);
  if (op == "coalesced")
    result.form = call_form::batch;
  if ((op != "send" && op != "recv") || blank == name.npos)
    return result;
  result.form = op == "send" ? call_form::send : call_form::receive;
  auto pair = name.substr(blank + 1);
  auto arrow = pair.find(op == "send" ? "->" : "<-");
  if (arrow == pair.npos)
    return result;
  std::from_chars(pair.data(), pair.data() + arrow, result.own);
  std::from_chars(pair.data() + arrow + 2, pair.data() + pair.size(), result.peer);
  return result;
}

const dump_reader::parsed_name& dump_reader::name_of_entry(text_id profiling) {
  if (profiling >= names_.size())
    names_.resize(part_.texts.size() + 64);
  if (!names_[profiling].known) {
    auto parsed = parse_name(part_.texts.text(profiling));
    names_[profiling] = parsed; // parse_name may add a text, but names_ has room for this one
  }
  return names_[profiling];
}

void dump_reader::read_groups() {
  auto config = tree_.at(root_, "pg_config");
  if (!config || config->type != kind::map)
    return;
  auto entries = tree_.entries(*config);
  for (size_t i = 0; i + 1 < entries.size(); i += 2) {
    if (entries[i].type != kind::text || entries[i + 1].type != kind::map)
      continue;
    process_group x;
    x.name = text_or(tree_, tree_.at(entries[i + 1], "name"), tree_.text(entries[i]));
    x.description = text_or(tree_, tree_.at(entries[i + 1], "desc"), "");
    if (auto ranks = tree_.at(entries[i + 1], "ranks"))
      x.members = ranks_of(tree_, *ranks);
    auto name = part_.texts.of(x.name), description = part_.texts.of(x.description);
    groups_.push_back({name, description, part_.group_of(std::move(x))});
  }
}

uint32_t dump_reader::group_of_entry(const entry_fields& fields) {
  text_id name = 0, description = 0;
  auto& x = fields[process_group_field];
  if (x.type == kind::text) {
    name = id_of(x);
  } else if (x.type == kind::list) {
    auto pair = tree_.entries(x);
    if (!pair.empty() && pair[0].type == kind::text)
      name = id_of(pair[0]);
    if (pair.size() > 1 && pair[1].type == kind::text)
      description = id_of(pair[1]);
  }
  uint32_t index = UINT32_MAX;
  for (auto& each : groups_) // a rank has few
    if (each.name == name && (index == UINT32_MAX || each.description == description))
      index = each.index;
  if (index == UINT32_MAX) {
    index = part_.group_of({std::string{part_.texts.text(name)}, std::string{part_.texts.text(description)}, {}});
    groups_.push_back({name, description, index});
  }
  if (fields[pg_id].type == kind::integer)
    groups_by_pg_id_.emplace(fields[pg_id].integer, index);
  return index;
}

/// The value's numbers and texts, as bytes that differ if the values do.
void dump_reader::add_key(dump_value nested, uint32_t depth) {
  auto add = [this](uint64_t x) {
    key_.append(reinterpret_cast<const char*>(&x), sizeof x);
    work_left_ -= std::min(work_left_, sizeof x);
  };
  add(static_cast<uint64_t>(nested.type));
  if (nested.type == kind::text)
    return add(id_of(nested));
  if (nested.type != kind::list || depth == 0)
    return add(static_cast<uint64_t>(nested.integer));
  auto entries = tree_.entries(nested);
  add(entries.size());
  for (auto each : entries.first(std::min(entries.size(), tensors_max)))
    if (work_left_ != 0)
      add_key(each, depth - 1);
}

text_id dump_reader::sizes_text(dump_value sizes, uint64_t& elements) {
  if (sizes.type != kind::list)
    return 0;
  constexpr size_t shown_max = 8;
  std::string text = "[";
  auto tensors = tree_.entries(sizes);
  tensors = tensors.first(std::min(tensors.size(), tensors_max));
  for (size_t i = 0; i < tensors.size(); ++i) {
    uint64_t product = 1;
    std::string dims;
    if (tensors[i].type == kind::list)
      for (auto dim : tree_.entries(tensors[i]).first(std::min<size_t>(tree_.entries(tensors[i]).size(), 64))) {
        product *= static_cast<uint64_t>(std::max<int64_t>(dim.integer, 0));
        dims += fmt::format("{}{}", dims.empty() ? "" : ", ", dim.integer);
      }
    elements += product;
    if (i < shown_max)
      text += fmt::format("{}[{}]", i == 0 ? "" : ", ", dims);
  }
  if (tensors.size() > shown_max)
    text += fmt::format(", ... {} more", tensors.size() - shown_max);
  return part_.texts.of(text + "]");
}

text_id dump_reader::types_text(dump_value types) {
  if (types.type == kind::text)
    return id_of(types);
  if (types.type != kind::list)
    return 0;
  std::string text;
  text_id last = 0;
  for (auto each : tree_.entries(types)) {
    if (each.type != kind::text || id_of(each) == last)
      continue;
    last = id_of(each);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", part_.texts.text(last));
  }
  return part_.texts.of(text);
}

uint32_t dump_reader::shape_of_entry(const entry_fields& fields) {
  key_.clear();
  for (auto each : {input_sizes, output_sizes, input_dtypes, output_dtypes})
    add_key(fields[each], 2);
  if (auto known = shapes_.find(std::string_view{key_}); known != shapes_.end())
    return known->second;
  call_shape x;
  x.input_sizes = sizes_text(fields[input_sizes], x.input_elements);
  x.output_sizes = sizes_text(fields[output_sizes], x.output_elements);
  x.input_types = types_text(fields[input_dtypes]);
  x.output_types = types_text(fields[output_dtypes]);
  auto index = static_cast<uint32_t>(part_.shapes.size());
  part_.shapes.push_back(x);
  shapes_.emplace(key_, index);
  return index;
}

uint32_t dump_reader::frame_of(dump_value map) {
  auto& known = frames_of_maps_[map.node];
  if (known == 0) {
    stack_frame x;
    x.function = part_.texts.of(text_or(tree_, tree_.at(map, "name"), ""));
    x.file = part_.texts.of(text_or(tree_, tree_.at(map, "filename"), ""));
    if (auto line = number_of(tree_, tree_.at(map, "line")); line && *line > 0)
      x.line = static_cast<uint32_t>(*line);
    known = static_cast<uint32_t>(frames_.size());
    frames_.push_back(x);
  }
  return known;
}

uint32_t dump_reader::stack_of(dump_value list) {
  if (list.type != kind::list)
    return 0;
  auto entries = tree_.entries(list);
  entries = entries.first(std::min(entries.size(), frames_max));
  if (frames_of_maps_.empty())
    frames_of_maps_.resize(tree_.containers());
  key_.clear();
  for (auto each : entries)
    if (each.type == kind::map) {
      auto frame = frame_of(each);
      key_.append(reinterpret_cast<const char*>(&frame), sizeof frame);
      work_left_ -= std::min(work_left_, sizeof frame);
    }
  if (key_.empty())
    return 0;
  if (auto known = stacks_.find(std::string_view{key_}); known != stacks_.end())
    return known->second;
  auto& stack = part_.stacks.emplace_back();
  for (auto each : entries)
    if (each.type == kind::map)
      stack.push_back(frames_[frame_of(each)]);
  auto index = static_cast<uint32_t>(part_.stacks.size() - 1);
  stacks_.emplace(key_, index);
  return index;
}

caf::error dump_reader::read_entry(size_t index, dump_value entry) {
  auto wrong = [index](std::string_view what) {
    return malformed(fmt::format("\"entries\", entry {}: {}", index, what));
  };
  if (entry.type != kind::map)
    return wrong("must be a dictionary");
  entry_fields fields{};
  auto cells = tree_.entries(entry);
  for (size_t i = 0; i + 1 < cells.size(); i += 2)
    if (cells[i].type == kind::text)
      if (auto id = id_of(cells[i]); id < fields_end)
        fields[id] = cells[i + 1];
  if (fields[profiling_name].type != kind::text)
    return wrong("\"profiling_name\" must be a text such as \"nccl:all_reduce\"");
  rank_call call;
  auto& name = name_of_entry(id_of(fields[profiling_name]));
  call.name = name.name;
  call.form = name.form;
  call.peer = name.peer;
  call.group = group_of_entry(fields);
  if (name.own != rank_call::no_peer)
    to_.own_index.emplace(call.group, name.own);
  const bool p2p = fields[is_p2p].type == kind::boolean
                     ? fields[is_p2p].integer != 0
                     : call.form == call_form::send || call.form == call_form::receive;
  auto sequence = fields[p2p ? p2p_seq_id : collective_seq_id];
  if (sequence.type != kind::integer)
    sequence = fields[seq_id];
  if (sequence.type != kind::integer || sequence.integer < 0)
    return wrong("\"collective_seq_id\" must be a number from 0");
  call.sequence = static_cast<uint64_t>(sequence.integer);
  if (call.form == call_form::batch && !p2p)
    call.form = call_form::collective;
  auto time = [&](field which) { return fields[which].type == kind::integer ? fields[which].integer : 0; };
  call.created_ns = time(time_created_ns);
  call.started_ns = time(time_started);
  call.completed_ns = time(time_completed);
  auto word = fields[state].type == kind::text ? id_of(fields[state]) : uint32_t{scheduled_word};
  if (word != scheduled_word && word != started_word && word != completed_word)
    return wrong("\"state\" must be \"scheduled\", \"started\" or \"completed\"");
  call.state = word == completed_word ? call_state::completed
               : word == started_word ? call_state::started
                                      : call_state::scheduled;
  if (fields[root].type == kind::integer && fields[root].integer >= 0)
    call.root = static_cast<uint32_t>(fields[root].integer);
  call.shape = shape_of_entry(fields);
  call.stack = stack_of(fields[frames]);
  if (work_left_ == 0)
    return wrong("its lists are repeated far more often than the file's size allows");
  if (call.state != call_state::completed && fields[retired].type == kind::boolean && fields[retired].integer != 0)
    rank_.waited_ns = std::max(rank_.waited_ns, std::clamp<int64_t>(time(timeout_ms), 0, 1'000'000'000) * 1'000'000);
  rank_.reports_starts |= call.started_ns != 0 || call.state == call_state::started;
  if (index == 0)
    rank_.wrapped = fields[record_id].type == kind::integer && fields[record_id].integer > 0;
  rank_.calls.push_back(call);
  is_p2p_.push_back(p2p);
  return caf::none;
}

/// PyTorch gives the calls of a batch no state of their own: they have that of the "coalesced" entry after them.
void dump_reader::settle_batches() {
  const auto coalesced = part_.texts.of("coalesced");
  for (size_t i = 0; i < rank_.calls.size(); ++i) {
    auto& end = rank_.calls[i];
    if (end.name != coalesced)
      continue;
    for (auto j = i; j-- > 0 && work_left_ != 0; --work_left_) {
      auto& member = rank_.calls[j];
      if (member.group != end.group || is_p2p_[j] != is_p2p_[i])
        continue; // of another group in between
      if (member.sequence != end.sequence || member.name == coalesced)
        break;
      member.state = end.state;
      member.started_ns = end.started_ns;
      member.completed_ns = end.completed_ns;
      if (!is_p2p_[j])
        member.form = call_form::part;
    }
  }
}

/// A group's collectives complete in order, so one before a completed one has completed, too.
void dump_reader::settle_states() {
  std::vector<uint64_t> completed(part_.groups.size(), 0);
  for (auto& x : rank_.calls)
    if (x.form == call_form::collective && x.state == call_state::completed)
      completed[x.group] = std::max(completed[x.group], x.sequence);
  for (auto& x : rank_.calls)
    if ((x.form == call_form::collective || x.form == call_form::part) && x.sequence < completed[x.group])
      x.state = call_state::completed;
}

void dump_reader::read_progress() {
  auto all = tree_.at(root_, "pg_status");
  if (!all || all->type != kind::map)
    return;
  auto entries = tree_.entries(*all);
  for (size_t i = 0; i + 1 < entries.size(); i += 2) {
    auto id = number_of(tree_, entries[i]);
    auto group = id ? groups_by_pg_id_.find(*id) : groups_by_pg_id_.end();
    if (group == groups_by_pg_id_.end())
      continue;
    auto number = [&](std::string_view key) { return number_of(tree_, tree_.at(entries[i + 1], key)).value_or(-1); };
    rank_.progress.push_back({group->second, number("last_enqueued_collective"), number("last_started_collective"),
                              number("last_completed_collective")});
  }
}

caf::error dump_reader::read() {
  read_groups();
  auto entries = tree_.at(root_, "entries");
  if (entries && entries->type != kind::list)
    return malformed("\"entries\" must be a list");
  if (entries) {
    auto all = tree_.entries(*entries);
    if (all.size() > entries_max)
      return malformed(fmt::format("\"entries\" has {} entries; at most {} are read", all.size(), entries_max));
    rank_.calls.reserve(all.size());
    for (size_t i = 0; i < all.size(); ++i)
      if (auto problem = read_entry(i, all[i]))
        return problem;
  }
  settle_batches();
  settle_states();
  read_progress();
  rank_.has_calls = true;
  rank_.sources = {to_.name};
  rank_.host = text_or(tree_, tree_.at(root_, "host"), text_or(tree_, tree_.at(root_, "host_name"), ""));
  rank_.dumped_ns = number_of(tree_, tree_.at(root_, "dump_time_ns")).value_or(0);
  if (auto pid = number_of(tree_, tree_.at(root_, "pid")); pid && *pid > 0)
    rank_.pid = static_cast<uint64_t>(*pid);
  if (auto rank = number_of(tree_, tree_.at(root_, "rank")); rank && *rank >= 0 && *rank < UINT32_MAX)
    to_.rank = static_cast<uint32_t>(*rank);
  to_.part.ranks.push_back(std::move(rank_));
  return caf::none;
}

} // namespace

bool is_flight_recorder_dump(const parsed_dump& dump) {
  return dump.tree.at(dump.root, "entries").has_value() || dump.tree.at(dump.root, "pg_config").has_value()
         || dump.tree.at(dump.root, "pg_status").has_value();
}

caf::error read_flight_recorder_dump(parsed_dump& dump, file_evidence& to) {
  return dump_reader{dump, to}.read();
}

} // namespace ringmaster::diagnosis
