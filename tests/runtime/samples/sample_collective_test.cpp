#include "runtime/samples/sample_collective.hpp"

#include "runtime/reduction/reducer.hpp"
#include "runtime/reduction/reduction.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

using namespace ringmaster;

namespace {

constexpr gpu_sim::ReduceOp measured_ops[] = {gpu_sim::SUM, gpu_sim::PROD, gpu_sim::MIN, gpu_sim::MAX, gpu_sim::AVG};

/// Every output of every rank, put together from the inputs element by element.
std::vector<std::vector<std::byte>> outputs_by_meaning(const sample_collective& data, proto::CollectiveKind kind,
                                                       const plan_request& request, proto::DataType type,
                                                       gpu_sim::ReduceOp op) {
  const auto element = size_of(type);
  const auto combine = *reducer::of(type, op);
  std::vector<std::vector<std::byte>> inputs, outputs;
  for (uint32_t rank = 0; rank < request.world_size; ++rank)
    inputs.push_back(data.input(rank));
  for (uint32_t rank = 0; rank < request.world_size; ++rank) {
    auto& output = outputs.emplace_back(output_count(kind, request, rank) * element);
    for (uint64_t i = 0; i * element < output.size(); ++i) {
      const auto from = meaning_of(kind, request, rank, i);
      std::vector<const std::byte*> sources;
      for (uint32_t source = 0; source < request.world_size; ++source)
        if (from.all_ranks || source == from.rank)
          sources.push_back(inputs[source].data() + from.index * element);
      combine.many(sources, output.data() + i * element, 1, from.all_ranks, request.world_size);
    }
  }
  return outputs;
}

} // namespace

TEST_CASE("sample_collective: it expects of every kind, variant and datatype what the kind means of its inputs, and "
          "sees a bit that "
          "differs") {
  for (auto kind : collective_kinds())
    for (uint32_t ranks : {2u, 3u, 5u})
      for (bool uneven : {false, true})
        for (auto& type : datatypes()) {
          if (uneven && !has_v_variant(kind))
            continue;
          plan_request request{.world_size = ranks, .count = 9, .root = 1, .peer = 0};
          for (uint32_t i = 0; uneven && i < ranks * (kind == proto::ALL_TO_ALL ? ranks : 1); ++i)
            request.counts.push_back(i * 7 % 5);
          for (auto op : measured_ops) {
            CAPTURE(name_of(kind));
            CAPTURE(type.name);
            CAPTURE(name_of(op));
            CAPTURE(ranks);
            sample_collective data{kind, request, type.value, op};
            auto outputs = outputs_by_meaning(data, kind, request, type.value, op);
            for (uint64_t first : {uint64_t{0}, uint64_t{2}})
              for (uint32_t rank = 0; rank < ranks; ++rank) {
                auto elements = outputs[rank].size() / type.element_bytes;
                auto start = std::min(first, elements);
                auto* from = outputs[rank].data() + start * type.element_bytes;
                REQUIRE(data.count_wrong(rank, start, elements - start, from) == 0);
                if (start == elements)
                  continue;
                outputs[rank].back() ^= std::byte{1};
                CHECK(data.count_wrong(rank, start, elements - start, from) == 1);
                outputs[rank].back() ^= std::byte{1};
              }
            if (!reduces(kind))
              break;
          }
        }
}

TEST_CASE("sample_collective: data of a wrong position or rank are wrong, for any shift") {
  constexpr uint64_t count = 1u << 16;
  constexpr uint32_t ranks = 16;
  for (auto& type : datatypes())
    for (auto op : measured_ops) {
      CAPTURE(type.name);
      CAPTURE(name_of(op));
      sample_collective moved{proto::ALL_GATHER, {.world_size = ranks, .count = count}, type.value, op};
      sample_collective reduced{proto::ALL_REDUCE, {.world_size = ranks, .count = count}, type.value, op};
      for (auto* data : {&moved, &reduced}) {
        const auto own = data->input(3);
        auto differing = [&](const std::vector<std::byte>& other, uint64_t shift) {
          uint64_t result = 0;
          for (uint64_t i = 0; i + shift < count; ++i)
            result += std::memcmp(own.data() + i * type.element_bytes, other.data() + (i + shift) * type.element_bytes,
                                  type.element_bytes)
                          != 0
                        ? 1
                        : 0;
          return result;
        };
        const uint64_t few = data == &moved ? count * 9 / 10 : count / 8; // small floats have few numbers that add up
        for (uint64_t shift : {1, 2, 3, 4, 8, 11, 16, 1024, 4096, 32768})
          CHECK(differing(own, shift) > few * (count - shift) / count);
        for (uint32_t rank = 0; rank < ranks; ++rank)
          if (rank != 3)
            CHECK(differing(data->input(rank), 0) > few);
      }
    }
}

TEST_CASE("sample_collective: every rank's input counts in a reduction of many, in every datatype") {
  constexpr uint32_t ranks = 1024;
  constexpr uint64_t count = 1u << 16, at_once = 1u << 9;
  for (auto& type : datatypes())
    for (auto op : {gpu_sim::SUM, gpu_sim::PROD, gpu_sim::MIN, gpu_sim::MAX}) {
      CAPTURE(type.name);
      CAPTURE(name_of(op));
      sample_values values{type, op, ranks};
      std::vector<uint32_t> all;
      for (uint32_t rank = 0; rank < ranks; ++rank)
        all.push_back(rank);
      std::vector<std::byte> whole(at_once * type.element_bytes), part(whole.size());
      std::vector<uint32_t> without_effect{0, 1, 511, 1023};
      for (uint64_t first = 0; first < count && !without_effect.empty(); first += at_once) {
        values.reduced(all, first, at_once, whole.data());
        std::erase_if(without_effect, [&](uint32_t missing) {
          auto but_one = all;
          but_one.erase(but_one.begin() + missing);
          values.reduced(but_one, first, at_once, part.data());
          return whole != part;
        });
      }
      CHECK(without_effect == std::vector<uint32_t>{});
    }
}

TEST_CASE("sample_collective: sums of samples are exact in every float type and order") {
  for (auto& type : datatypes())
    for (auto op : measured_ops)
      for (uint32_t ranks : {2u, 7u, 8u, 100u}) {
        if (!type.is_float)
          continue;
        CAPTURE(type.name);
        CAPTURE(name_of(op));
        CAPTURE(ranks);
        constexpr uint64_t count = 300;
        sample_collective data{proto::ALL_REDUCE, {.world_size = ranks, .count = count}, type.value, op};
        auto combine = *reducer::of(type.value, op);
        auto up = data.input(0), down = data.input(ranks - 1);
        for (uint32_t rank = 1; rank < ranks; ++rank) { // each step rounded to the datatype
          combine(up.data(), data.input(rank).data(), up.data(), count);
          combine(down.data(), data.input(ranks - 1 - rank).data(), down.data(), count);
        }
        combine.finish(ranks, up.data(), count);
        combine.finish(ranks, down.data(), count);
        CHECK(data.count_wrong(0, 0, count, up.data()) == 0);
        CHECK(data.count_wrong(1, 0, count, down.data()) == 0);
      }
}
