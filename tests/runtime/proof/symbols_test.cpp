#include "runtime/proof/rank_sets.hpp"
#include "runtime/proof/symbol_buffer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

using namespace ringmaster;

namespace {

/// One element of a buffer: what a run says about it.
struct symbol {
  rank_sets::id of = rank_sets::empty;
  uint64_t index = 0;
  bool finished = false;

  friend bool operator==(const symbol&, const symbol&) = default;
};

std::vector<symbol> elements_of(const std::vector<symbol_run>& runs, uint64_t count) {
  std::vector<symbol> result;
  for (size_t i = 0; i < runs.size(); ++i)
    for (auto k = runs[i].start; k < (i + 1 < runs.size() ? runs[i + 1].start : count); ++k)
      result.push_back({runs[i].of, k + runs[i].shift, runs[i].finished});
  return result;
}

} // namespace

TEST_CASE("rank sets: unions are those of plain sets, and the same set has the same id") {
  std::mt19937_64 random{7};
  for (uint32_t world_size : {3, 20, 70}) { // 70: long enough to be remembered
    rank_sets sets;
    std::vector<std::pair<rank_sets::id, std::set<uint32_t>>> known;
    for (uint32_t rank = 0; rank < world_size; ++rank)
      known.push_back({sets.range(rank, rank + 1), {rank}});
    for (int i = 0; i < 3000; ++i) {
      const auto [a, plain_a] = known[random() % known.size()];
      const auto [b, plain_b] = known[random() % known.size()];
      auto united = sets.unite(a, b);
      auto plain = plain_a;
      plain.insert(plain_b.begin(), plain_b.end());
      CHECK(sets.size(united.both) == plain.size());
      for (uint32_t rank = 0; rank < world_size; ++rank)
        CHECK(sets.contains(united.both, rank) == plain.contains(rank));
      auto shared = std::any_of(plain_a.begin(), plain_a.end(), [&](auto rank) { return plain_b.contains(rank); });
      CHECK((united.common != rank_sets::none) == shared);
      if (shared)
        CHECK((plain_a.contains(united.common) && plain_b.contains(united.common)));
      for (auto& [id, other] : known)
        CHECK((id == united.both) == (other == plain));
      if (known.size() < 200)
        known.push_back({united.both, std::move(plain)});
      else
        known[random() % known.size()] = {united.both, std::move(plain)};
    }
  }
}

TEST_CASE("rank sets: their text is for people") {
  rank_sets sets;
  CHECK(sets.text(rank_sets::empty) == "no rank");
  CHECK(sets.text(sets.range(2, 3)) == "rank 2");
  CHECK(sets.text(sets.range(0, 4)) == "ranks 0 to 3");
  CHECK(sets.text(sets.unite(sets.range(0, 4), sets.range(7, 8)).both) == "ranks 0 to 3, 7");
}

TEST_CASE("symbol buffer: copies between buffers are those of plain elements") {
  std::mt19937_64 random{11};
  constexpr uint64_t count = 40;
  for (int trial = 0; trial < 200; ++trial) {
    symbol_run all{0, 0, 1, false};
    std::vector<symbol_buffer> buffers{symbol_buffer{count, all}, symbol_buffer{count}, symbol_buffer{count}};
    std::vector<std::vector<symbol>> plain{elements_of({all}, count), std::vector<symbol>(count),
                                           std::vector<symbol>(count)};
    for (uint64_t i = 0; i < count; ++i)
      plain[1][i].index = plain[2][i].index = i; // as the run that was never written has it
    for (int i = 0; i < 60; ++i) {
      auto size = random() % (random() % 4 == 0 ? count : 6) + 1;
      auto from = random() % (count - size + 1), to = random() % (count - size + 1);
      auto source = random() % 3, target = random() % 3;
      auto finish = random() % 5 == 0;
      std::vector<symbol_run> runs;
      buffers[source].read(from, size, runs);
      for (auto& x : runs)
        x.finished = x.finished || finish;
      buffers[target].write(to, size, runs);
      auto values = std::vector<symbol>(plain[source].begin() + static_cast<ptrdiff_t>(from),
                                        plain[source].begin() + static_cast<ptrdiff_t>(from + size));
      for (auto& x : values)
        x.finished = x.finished || finish;
      std::copy(values.begin(), values.end(), plain[target].begin() + static_cast<ptrdiff_t>(to));
      runs.clear();
      buffers[target].read(0, count, runs);
      REQUIRE(elements_of(runs, count) == plain[target]);
      for (size_t k = 1; k < runs.size(); ++k)
        REQUIRE(!runs[k].same_symbols(runs[k - 1])); // as few as can be
    }
  }
}

TEST_CASE("outcome: whole outputs are what each element means") {
  for (auto kind : collective_kinds())
    for (uint32_t world_size = 1; world_size <= 6; ++world_size)
      for (auto uneven : {false, true}) {
        plan_request request{.world_size = world_size, .count = 5, .root = world_size - 1};
        if ((uneven && !has_v_variant(kind)) || check_request(kind, request))
          continue;
        for (uint32_t i = 0; uneven && i < (kind == proto::ALL_TO_ALL ? world_size * world_size : world_size); ++i)
          request.counts.push_back((i * 5 + 3) % 4);
        rank_sets sets;
        expected_outcome expected{kind, request, sets};
        for (uint32_t rank = 0; rank < world_size; ++rank) {
          auto count = output_count(kind, request, rank);
          auto elements = elements_of(expected.of(rank), count);
          REQUIRE(elements.size() == count);
          for (uint64_t i = 0; i < count; ++i) {
            auto meaning = meaning_of(kind, request, rank, i);
            CAPTURE(name_of(kind));
            CHECK(elements[i].index == meaning.index);
            CHECK(elements[i].finished == meaning.all_ranks);
            CHECK(elements[i].of
                  == (meaning.all_ranks ? sets.range(0, world_size) : sets.range(meaning.rank, meaning.rank + 1)));
          }
        }
      }
}
