#include "runtime/drawing/walk_through.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/simulation/message_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace ringmaster {

namespace {

/// The content of one element: `block` is the index of an input element here.
using elements = std::vector<content>;
using rank_elements = std::array<elements, 3>; ///< By buffer.

/// An activity in elements, before these are combined to blocks and cells.
struct raw_activity {
  uint32_t round = 0;
  drawn_activity drawn{};
  elements moved{};
};

class walker {
public:
  walker(walk_through story, const plan_request& request, std::span<const schedule> ranks, message_graph graph)
    : story_(std::move(story)), request_(request), ranks_(ranks), graph_(std::move(graph)), begun_(graph_.steps.size()),
      ended_(graph_.steps.size()), order_(graph_.steps.size()), token_(graph_.steps.size()), progress_(ranks.size()),
      memory_(ranks.size()) {}

  caf::expected<walk_through> run() {
    RETURN_ERROR(check_size());
    prepare();
    RETURN_ERROR(check_ranges());
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank)
      open_round(rank);
    for (auto moved = true; moved;) {
      moved = false;
      for (uint32_t rank = 0; rank < ranks_.size(); ++rank)
        moved = advance(rank) || moved;
    }
    note_stuck_ranks();
    gather_blocks();
    gather_cells();
    return std::move(story_);
  }

private:
  /// The steps of the rank's current round, and the number of rounds whose results are recorded.
  struct rank_progress {
    uint32_t first = 0, next = 0, recorded = 0;
  };

  bool is_barrier() const { return story_.kind == proto::BARRIER; }

  const step& at(uint32_t rank, uint32_t index) const { return ranks_[rank].steps[index - graph_.first_steps[rank]]; }

  caf::error check_size() const {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      if (std::max({input_count(story_.kind, request_, rank), output_count(story_.kind, request_, rank),
                    ranks_[rank].scratch_count})
          > drawn_elements_max)
        return invalid(fmt::format("a picture has at most {} elements a buffer", drawn_elements_max));
      if (ranks_[rank].rounds > drawn_rounds_max)
        return invalid(fmt::format("a picture has at most {} rounds", drawn_rounds_max));
    }
    return caf::none;
  }

  void prepare() {
    uint32_t rounds = 0;
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      auto& [input, output, scratch] = memory_[rank];
      input.resize(input_count(story_.kind, request_, rank));
      for (uint32_t i = 0; i < input.size(); ++i)
        input[i] = {i, 1u << rank};
      output.resize(output_count(story_.kind, request_, rank));
      if (is_barrier())
        output.push_back({0, 1u << rank});
      scratch.resize(ranks_[rank].scratch_count);
      rounds = std::max(rounds, ranks_[rank].rounds);
      progress_[rank].first = progress_[rank].next = graph_.first_steps[rank];
    }
    history_.assign(rounds, std::vector<rank_elements>(ranks_.size()));
    story_.rounds.resize(rounds);
  }

  caf::error check_ranges() const {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank)
      for (const auto& x : ranks_[rank].steps) {
        auto bad = [&](const block_range& range) {
          auto size = memory_[rank][static_cast<size_t>(range.where)].size();
          return range.offset > size || range.count > size - range.offset;
        };
        auto two = x.what == action::recv_reduce || x.what == action::copy || x.what == action::reduce;
        if (bad(x.source) || bad(x.destination) || (two && x.source.count != x.destination.count)
            || x.round >= history_.size())
          return invalid(fmt::format("rank {}, round {}: a step does not fit the buffers", rank, x.round));
      }
    return caf::none;
  }

  void open_round(uint32_t rank) {
    auto& p = progress_[rank];
    auto end = graph_.first_steps[rank + 1];
    p.first = p.next;
    ensure(p.first <= end, "a rank's rounds have its own steps");
    auto round = p.first == end ? static_cast<uint32_t>(history_.size()) : graph_.steps[p.first].round;
    for (; p.recorded < round; ++p.recorded)
      history_[p.recorded][rank] = memory_[rank];
    for (; p.next != end && graph_.steps[p.next].round == round; ++p.next)
      if (!graph_.steps[p.next].then)
        begin(rank, p.next);
  }

  /// Ranks in a deadlock keep their data.
  void note_stuck_ranks() {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      auto& p = progress_[rank];
      if (p.first == graph_.first_steps[rank + 1])
        continue;
      if (!story_.fault)
        story_.fault = invalid(fmt::format("rank {} waits in round {} for ever", rank, +graph_.steps[p.first].round));
      for (; p.recorded < history_.size(); ++p.recorded)
        history_[p.recorded][rank] = memory_[rank];
    }
  }

  /// A barrier's token contains the ranks that its sender knows.
  void begin(uint32_t rank, uint32_t index) {
    begun_[index] = true;
    if (is_barrier())
      token_[index] = memory_[rank][static_cast<size_t>(buffer::output)][0];
  }

  /// Performs all activities of the rank that can start. Returns whether there was one.
  bool advance(uint32_t rank) {
    auto& p = progress_[rank];
    auto moved = false;
    for (auto i = p.first; i < p.next; ++i) {
      const auto& x = graph_.activities[graph_.steps[i].activity];
      if (ended_[i] || !begun_[x.source_step] || !begun_[x.destination_step])
        continue;
      perform(x);
      moved = true;
    }
    if (p.first != p.next && std::all_of(ended_.begin() + p.first, ended_.begin() + p.next, [](bool x) { return x; }))
      open_round(rank);
    return moved;
  }

  void perform(const activity& x) {
    auto source = x.is_local() ? x.channel : graph_.channels[x.channel].source;
    auto destination = x.is_local() ? x.channel : graph_.channels[x.channel].destination;
    auto round = std::max(graph_.steps[x.source_step].round, graph_.steps[x.destination_step].round);
    auto order = std::max(order_[x.source_step], order_[x.destination_step]);
    auto moved = is_barrier() ? pass_token(destination, x) : pass_elements(source, destination, x);
    auto what = at(destination, x.destination_step).what;
    ensure(round < story_.rounds.size(), "an activity is in a round of the schedules");
    raw_.push_back({round, {what, source, destination, order, {}}, std::move(moved)});
    end_step(source, x.source_step, order);
    if (!x.is_local())
      end_step(destination, x.destination_step, order);
  }

  elements pass_token(uint32_t destination, const activity& x) {
    auto token = token_[x.source_step];
    memory_[destination][static_cast<size_t>(buffer::output)][0].ranks |= token.ranks;
    return {token};
  }

  /// Returns the elements sent.
  elements pass_elements(uint32_t source, uint32_t destination, const activity& x) {
    const auto& sent = at(source, x.source_step).source;
    const auto& s = at(destination, x.destination_step);
    auto from = memory_[source][static_cast<size_t>(sent.where)].begin() + static_cast<ptrdiff_t>(sent.offset);
    elements moved(from, from + static_cast<ptrdiff_t>(sent.count));
    auto* to = memory_[destination][static_cast<size_t>(s.destination.where)].data() + s.destination.offset;
    auto& own_buffer = memory_[destination][static_cast<size_t>(s.source.where)];
    for (size_t i = 0; i < moved.size(); ++i) { // lane by lane, for a fold
      auto& target = to[i % s.destination.count];
      auto own = s.what == action::recv_reduce ? own_buffer[s.source.offset + i] : target;
      auto adds = s.what == action::recv_reduce || s.what == action::reduce || i >= s.destination.count;
      target = {moved[i].block, moved[i].ranks | (adds ? own.ranks : 0)};
    }
    return moved;
  }

  void end_step(uint32_t rank, uint32_t index, uint32_t order) {
    ensure(begun_[index] && !ended_[index], "a step ends once, after it began");
    ended_[index] = true;
    if (index + 1 < progress_[rank].next && graph_.steps[index + 1].then) {
      begin(rank, index + 1);
      order_[index + 1] = order + 1;
    }
  }

  /// Blocks start and end where the data of a message does.
  void gather_blocks() {
    std::set<uint32_t> starts{0};
    uint32_t inputs = 0, sources = 0;
    for (const auto& rank : memory_) {
      inputs = std::max(inputs, static_cast<uint32_t>(rank[0].size()));
      sources += rank[0].empty() ? 0 : 1;
    }
    for (const auto& x : raw_)
      for (size_t i = 0; i < x.moved.size(); ++i) {
        auto now = x.moved[i].block;
        if (now != content::nothing && (i == 0 || x.moved[i - 1].block + 1 != now))
          starts.insert(now);
        if (now != content::nothing && (i + 1 == x.moved.size() || x.moved[i + 1].block != now + 1))
          starts.insert(now + 1);
      }
    starts.erase(starts.lower_bound(std::max(inputs, 1u)), starts.end());
    block_of_.assign(std::max(inputs, 1u), 0);
    for (uint32_t i = 1; i < inputs; ++i)
      block_of_[i] = block_of_[i - 1] + (starts.contains(i) ? 1 : 0);
    story_.blocks = static_cast<uint32_t>(starts.size());
    story_.one_source = sources <= 1;
  }

  content in_blocks(content x) const { return x.block == content::nothing ? x : content{block_of_[x.block], x.ranks}; }

  void gather_cells() {
    ensure(!block_of_.empty() && story_.blocks >= 1, "the input has been divided into blocks");
    for (auto& x : raw_) {
      for (const auto& element : x.moved)
        if (auto c = in_blocks(element);
            std::find(x.drawn.contents.begin(), x.drawn.contents.end(), c) == x.drawn.contents.end())
          x.drawn.contents.push_back(c);
      story_.rounds[x.round].activities.push_back(std::move(x.drawn));
    }
    for (auto& round : story_.rounds)
      round.after.resize(ranks_.size());
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      auto& cells = story_.inputs.emplace_back();
      for (const auto& element : memory_[rank][0])
        if (auto c = in_blocks(element); cells.empty() || cells.back() != c)
          cells.push_back(c);
      gather_cells(rank, buffer::output);
      if (!is_barrier())
        gather_cells(rank, buffer::scratch);
    }
  }

  /// A cell starts at the first element, and at each element whose content differs from the previous one at any time.
  void gather_cells(uint32_t rank, buffer where) {
    auto index = static_cast<size_t>(where);
    for (size_t i = 0; i < memory_[rank][index].size(); ++i) {
      auto differs = [&](auto& after) {
        return i == 0 || in_blocks(after[rank][index][i - 1]) != in_blocks(after[rank][index][i]);
      };
      if (std::none_of(history_.begin(), history_.end(), differs))
        continue;
      for (size_t round = 0; round < history_.size(); ++round) {
        auto& holdings = story_.rounds[round].after[rank];
        (where == buffer::output ? holdings.output : holdings.scratch)
          .push_back(in_blocks(history_[round][rank][index][i]));
      }
    }
  }

  walk_through story_;
  const plan_request& request_;
  std::span<const schedule> ranks_;
  message_graph graph_;
  std::vector<bool> begun_, ended_; ///< By step.
  std::vector<uint32_t> order_;
  std::vector<content> token_; ///< BARRIER: by step.
  std::vector<rank_progress> progress_;
  std::vector<rank_elements> memory_;
  std::vector<std::vector<rank_elements>> history_; ///< After each round, by rank.
  std::vector<raw_activity> raw_;
  std::vector<uint32_t> block_of_; ///< By element of the input.
};

/// "0-3", "5", "0, 2": the sorted numbers; empty if the text would be long.
std::string numbers_text(std::vector<uint32_t> numbers, std::string_view prefix) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::string text;
  int runs = 0;
  for (size_t i = 0; i < numbers.size(); ++runs) {
    auto last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1)
      ++last;
    text += fmt::format("{}{}{}", i == 0 ? "" : ",", prefix, numbers[i]);
    if (last != i)
      text += fmt::format("-{}{}", prefix, numbers[last]);
    i = last + 1;
  }
  return runs <= 3 ? text : "";
}

/// "0>1", "0>1,3,5", "0,5>2", "1>4 2>0": from and to which ranks; empty if the text would be long.
std::string pairs_text(const std::vector<uint32_t>& sources, const std::vector<uint32_t>& blocks) {
  auto all_same = [](auto& x) { return std::all_of(x.begin(), x.end(), [&](auto y) { return y == x.front(); }); };
  if (all_same(sources) || all_same(blocks)) {
    auto from = numbers_text(sources, ""), to = numbers_text(blocks, "");
    return from.empty() || to.empty() ? "" : from + ">" + to;
  }
  if (sources.size() > 2)
    return "";
  return fmt::format("{}>{} {}>{}", sources[0], blocks[0], sources[1], blocks[1]);
}

std::vector<uint32_t> ranks_in(uint32_t mask) {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < drawn_ranks_max; ++rank)
    if ((mask >> rank & 1) != 0)
      ranks.push_back(rank);
  return ranks;
}

} // namespace

std::string hosts_text(const walk_through& story) {
  std::map<uint32_t, std::string> ranks;
  for (uint32_t rank = 0; rank < story.hosts.size(); ++rank)
    ranks[story.hosts[rank]] += fmt::format(" {}", rank);
  std::string text;
  for (const auto& [host, its] : ranks)
    text += (text.empty() ? ", on hosts" : " |") + its;
  return text;
}

caf::expected<walk_through> walk(proto::CollectiveKind kind, std::string_view algorithm, const plan_request& request,
                                 std::span<const schedule> ranks) {
  if (request.world_size > drawn_ranks_max || ranks.size() != request.world_size)
    return invalid(fmt::format("a picture has at most {} ranks, with a schedule each, and these are {} schedules of {}",
                               drawn_ranks_max, ranks.size(), request.world_size));
  auto source = [&](uint32_t rank) -> caf::expected<schedule> { return ranks[rank]; };
  TRY(graph, link_schedules(request.world_size, source));
  walk_through story{
    .kind = kind, .algorithm = std::string{algorithm}, .world_size = request.world_size, .hosts = request.hosts};
  return walker{std::move(story), request, ranks, std::move(*graph)}.run();
}

caf::expected<walk_through> walk(proto::CollectiveKind kind, std::string_view algorithm, const plan_request& request) {
  if (request.world_size > drawn_ranks_max)
    return invalid(fmt::format("a picture has at most {} ranks", drawn_ranks_max));
  TRY(ranks, plan_all(kind, algorithm, request));
  return walk(kind, algorithm, request, *ranks);
}

std::string label_of(const walk_through& story, const std::vector<content>& contents) {
  if (contents.empty())
    return "";
  std::vector<uint32_t> blocks, sources;
  for (const auto& x : contents) {
    blocks.push_back(x.block);
    for (auto rank : ranks_in(x.ranks))
      sources.push_back(rank);
  }
  if (contents.front().block == content::nothing)
    return "?";
  std::string text;
  if (story.kind == proto::BARRIER)
    text = story.is_whole(contents.front()) ? "all" : numbers_text(sources, "");
  else if (story.shows_sums() && story.blocks == 1)
    text = story.is_whole(contents.front()) ? "sum" : numbers_text(sources, "x");
  else if (story.coloured_by_block())
    text = story.blocks == 1 ? "all" : numbers_text(blocks, "");
  else if (story.blocks == 1)
    text = numbers_text(sources, "");
  else
    text = pairs_text(sources, blocks);
  return text.empty() ? fmt::format("{} blocks", contents.size()) : text;
}

} // namespace ringmaster
