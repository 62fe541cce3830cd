// Tensor parallelism by hand, with the figures of the exercise that it comes from, and beside a single rank.
#include "client/parallel/megatron_pair.hpp"
#include "client/parallel/naive_layers.hpp"
#include "client/parallel/placement.hpp"
#include "client/parallel/zero_3.hpp"
#include "tests/client/parallel/played_ranks.hpp"
#include "training/data/sample_partition.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::parallel;
using training::layer_cut;
using training::tensor_layout;

namespace {

const training::cut_layer hidden_layer{"hidden", 768, 256, layer_cut::columns},
  last_layer{"out", 256, 10, layer_cut::rows};

tensor_layout layout_of(uint32_t ranks, uint32_t tensor_side, uint64_t samples = 0) {
  auto made = tensor_layout::of(ranks, tensor_side, {hidden_layer, last_layer}, samples);
  REQUIRE(made);
  return std::move(*made);
}

/// Whole numbers from -3 to 3, whose sums of products are exact.
tensor small_numbers(std::vector<uint64_t> shape, uint64_t seed) {
  tensor result{std::move(shape)};
  for (uint64_t i = 0; i < result.elements(); ++i)
    result.values()[i] = static_cast<float>((seed + 5 * i + i / 7) % 7) - 3;
  return result;
}

tensor given(caf::expected<tensor> x) {
  REQUIRE_MESSAGE(x, render(x.error()));
  return std::move(*x);
}

} // namespace

TEST_CASE("tensors: a shape, rows and cuts; impossible ones are errors") {
  const auto x = arange({4, 3, 8});
  CHECK(x.rows() == 12);
  CHECK(x.shape_text() == "[4 x 3 x 8]");
  CHECK(given(cut_first_axis(x, {1, 2})) == arange({1, 3, 8}, 24));
  CHECK(given(part_of_last_axis(arange({2, 4}), 1, 2)) == tensor_of({2, 2}, {2, 3, 6, 7}));
  CHECK(render(tensor::of({2, 3}, {1}).error()) == "a tensor of [2 x 3] has 6 numbers, not 1");
  CHECK(code_of(tensor::of({1u << 31, 1u << 31, 1u << 31}, {}).error()) == errc::invalid_argument);
  CHECK(given(cut_last_axis(tensor{{uint64_t{1} << 60, 0}}, {0, 0})).rows() == 0); // at once
  CHECK(given(linear_forward(tensor{{2, 0}}, tensor{{0, 3}})) == tensor{{2, 3}});
  CHECK(render(part_of_last_axis(x, 0, 3).error())
        == "[4 x 3 x 8] has no part 0 of 3 equal ones of its last axis: it must be a multiple of them");
  CHECK(render(cut_first_axis(x, {3, 5}).error())
        == "3 to 5 are not within the first axis of [4 x 3 x 8], which has 4");
}

TEST_CASE("placement: 8 ranks, 4 by 4: layers by columns and rows, samples by the layout and as they are shuffled") {
  const auto layout = layout_of(8, 4, 10);
  const auto hidden = arange({768, 256}), last = arange({256, 10});
  for (uint32_t rank = 0; rank < 8; ++rank) {
    const auto index = rank % 4;
    const auto columns = given(parameter_of(hidden, hidden_layer, layout, rank));
    CHECK(columns.shape() == std::vector<uint64_t>{768, 64});
    CHECK(columns.row(5)[3] == 5 * 256 + 64 * index + 3);
    CHECK(given(parameter_of(last, last_layer, layout, rank)) == arange({64, 10}, 640.F * static_cast<float>(index)));
    CHECK(given(samples_of(arange({10, 2}), layout, rank)) == arange({5, 2}, rank < 4 ? 0 : 10));
  }
  const training::sample_partition parts{8, 1234, *training::equal_counts(8, 2)};
  CHECK(given(take_samples(arange({8}), parts.of(0))) == tensor_of({4}, {1, 3, 2, 4}));
  CHECK(given(take_samples(arange({8}), parts.of(1))) == tensor_of({4}, {5, 6, 0, 7}));
  const uint32_t behind[] = {8};
  CHECK(render(take_samples(arange({8}), behind).error()) == "there is no sample 8 in [8]: its first axis has 8");
  CHECK(render(parameter_of(last, hidden_layer, layout, 0).error())
        == "layer \"hidden\" is 768x256, and the weight [256 x 10]");
  CHECK(render(samples_of(arange({9}), layout, 0).error())
        == "[9] has 9 samples, its first axis, and the layout is of 10");
}

TEST_CASE("placement: tensor groups are neighbours, data groups have one tensor index: sums over both") {
  played_ranks cluster;
  const auto layout = layout_of(8, 4);
  const auto rows = arange({8, 10});
  cluster.succeed(8, [&](rank_communicator& self, client& host) -> caf::error {
    auto groups = split_world(self, layout);
    if (!groups)
      return std::move(groups.error());
    const auto rank = self.rank();
    const std::span<const float> mine{rows.row(rank), 10};
    tensor_group shares{groups->tensor, host, played_ranks::limit}, repeats{groups->data, host, played_ranks::limit};
    if (shares.rank() != rank % 4 || repeats.rank() != rank / 4)
      return make_error(errc::corrupt, fmt::format("rank {} of {}", shares.rank(), repeats.rank()));
    if (auto problem = differs(shares.all_reduce(mine), arange({10}, rank < 4 ? 60 : 220, 4).values()))
      return problem;
    // Of tensor index 0 40 and so on, of index 3 100: each of the ten is 20 more.
    return differs(repeats.all_reduce(mine), arange({10}, 40 + 20 * static_cast<float>(rank % 4), 2).values());
  });
}

TEST_CASE("linear layer: forward and backward by hand, and what does not go together") {
  const auto w = tensor_of({2, 4}, {11, 6, 2, 3, 4, 5, 7, 8}), b = tensor_of({4}, {1, 0, 2, 1});
  const auto x = arange({2, 2}, 1), by_y = arange({2, 4}, 1);
  CHECK(given(linear_forward(x, w, b)) == tensor_of({2, 4}, {20, 16, 18, 20, 50, 38, 36, 42}));
  CHECK(given(linear_forward(x, w)) == tensor_of({2, 4}, {19, 16, 16, 19, 49, 38, 34, 41}));
  auto back = linear_backward(x, w, by_y);
  REQUIRE(back);
  CHECK(back->x == tensor_of({2, 2}, {41, 67, 129, 163}));
  CHECK(back->w == tensor_of({2, 4}, {16, 20, 24, 28, 22, 28, 34, 40}));
  CHECK(back->b == tensor_of({4}, {6, 8, 10, 12}));
  CHECK(render(linear_forward(by_y, w, b).error())
        == "an input of [2 x 4] and a weight of [2 x 4]: the weight must be [4 x outputs]");
  CHECK(render(linear_forward(x, w, x).error()) == "a weight of [2 x 4] and a bias of [2 x 2]: the bias must be [4]");
  CHECK(code_of(linear_backward(x, w, x).error()) == errc::invalid_argument);
}

TEST_CASE("naive layers: the gradient by the input is summed, and each of 4 ranks gets its features") {
  played_ranks cluster;
  cluster.succeed(4, [](rank_communicator& self, client& host) -> caf::error {
    tensor_group over{self, host, played_ranks::limit};
    const auto mine = arange({3, 8}, 24.F * static_cast<float>(self.rank()));
    const auto first = 144 + 8.F * static_cast<float>(self.rank());
    return differs(reduce_input_gradient(over, mine),
                   tensor_of({3, 2}, {first, first + 4, first + 32, first + 36, first + 64, first + 68}));
  });
}

TEST_CASE("naive layers: forward and backward on 1 to 8 ranks are what one alone computes") {
  played_ranks cluster;
  for (uint32_t ranks = 1; ranks <= played_ranks::most; ++ranks) {
    CAPTURE(ranks);
    const auto x = small_numbers({2, 3, 3 * ranks}, 1), w = small_numbers({3 * ranks, 2 * ranks}, 2),
               b = small_numbers({2 * ranks}, 3), by_y = small_numbers({2, 3, 2 * ranks}, 4);
    const auto y = given(linear_forward(x, w, b));
    auto alone = linear_backward(x, w, by_y);
    REQUIRE(alone);
    cluster.succeed(ranks, [&](rank_communicator& self, client& host) -> caf::error {
      tensor_group over{self, host, played_ranks::limit};
      const auto part = [&](const tensor& of) { return *part_of_last_axis(of, self.rank(), ranks); };
      auto whole = gather_input(over, part(x));
      if (auto problem = differs(whole, x))
        return problem;
      if (auto problem = differs(gather_output(over, *linear_forward(*whole, part(w), part(b))), y))
        return problem;
      auto back = linear_backward(*whole, part(w), *slice_output_gradient(over, by_y));
      for (auto& [found, right] : {std::pair{&back->w, &alone->w}, std::pair{&back->b, &alone->b}})
        if (auto problem = differs(*found, part(*right)))
          return problem;
      return differs(reduce_input_gradient(over, back->x), part(alone->x));
    });
  }
}

TEST_CASE(
  "megatron pair: on 1 to 8 ranks output and gradients are what one alone computes, by one all-reduce each way") {
  played_ranks cluster;
  for (uint32_t ranks = 1; ranks <= played_ranks::most; ++ranks) {
    CAPTURE(ranks);
    const uint64_t hidden = 2 * ranks;
    const megatron_pair alone{small_numbers({3, hidden}, 1), small_numbers({hidden}, 2), small_numbers({hidden, 5}, 3),
                              small_numbers({5}, 4)};
    const auto x = small_numbers({4, 3}, 5), by_y = small_numbers({4, 5}, 6);
    // By plain loops over the layers' own words.
    auto middle = given(linear_forward(x, alone.first_weight, alone.first_bias));
    for (auto& each : middle.values())
      each = each > 0 ? each : 0;
    const auto y = given(linear_forward(middle, alone.second_weight, alone.second_bias));
    auto second = linear_backward(middle, alone.second_weight, by_y);
    for (uint64_t i = 0; i < middle.elements(); ++i)
      second->x.values()[i] *= middle.values()[i] > 0;
    auto first = linear_backward(x, alone.first_weight, second->x);
    auto layout = tensor_layout::of(ranks, ranks,
                                    {{"in", 3, hidden, layer_cut::columns}, {"out", hidden, 5, layer_cut::rows}});
    REQUIRE(layout);
    cluster.succeed(ranks, [&](rank_communicator& self, client& host) -> caf::error {
      const auto columns = [&](const tensor& of) {
        return *parameter_of(of, layout->layers()[0], *layout, self.rank());
      };
      const auto rows = [&](const tensor& of) { return *parameter_of(of, layout->layers()[1], *layout, self.rank()); };
      const auto part = [&](const tensor& of) { return *part_of_last_axis(of, self.rank(), ranks); };
      const megatron_pair mine{columns(alone.first_weight), part(alone.first_bias), rows(alone.second_weight),
                               alone.second_bias};
      tensor_group over{self, host, played_ranks::limit};
      auto output = pair_forward(over, mine, x);
      if (!output)
        return std::move(output.error());
      auto back = pair_backward(over, mine, x, output->hidden, by_y);
      if (!back)
        return std::move(back.error());
      auto too_long = mine;
      too_long.second_bias = tensor{{6}};
      if (auto taken = pair_forward(over, too_long, x);
          taken || render(taken.error()) != "the second bias of [6] must be [5]")
        return make_error(errc::invalid_argument, "a bias with a number more was taken, or refused otherwise");
      const std::pair<tensor, tensor> rows_of_test[] = {{output->y, y},
                                                        {output->hidden, part(middle)},
                                                        {back->x, first->x},
                                                        {back->first_weight, columns(first->w)},
                                                        {back->first_bias, part(first->b)},
                                                        {back->second_weight, rows(second->w)},
                                                        {back->second_bias, second->b}};
      for (auto& [found, right] : rows_of_test)
        if (auto problem = differs(found, right))
          return problem;
      return caf::none;
    });
  }
}

TEST_CASE("zero 3: 39 numbers on 4 ranks are shards of 10, the last one padded with 0") {
  const auto whole = arange({3, 13}, 1);
  CHECK(shard_elements(39, 4) == 10);
  for (uint32_t rank = 0; rank < 3; ++rank)
    CHECK(given(shard_of(whole, rank, 4)) == arange({10}, 1 + 10.F * static_cast<float>(rank)));
  CHECK(given(shard_of(whole, 3, 4)) == tensor_of({10}, {31, 32, 33, 34, 35, 36, 37, 38, 39, 0}));
  CHECK(render(shard_of(whole, 4, 4).error()) == "there is no shard 4 of 4: they are counted from 0");
  CHECK(given(shard_of(arange({2}), 3, 4)) == tensor_of({1}, {0})); // more ranks than numbers
}

TEST_CASE("zero 3: shards are gathered as the whole, and of the gradients' sum each rank gets its own") {
  played_ranks cluster;
  for (uint32_t ranks = 1; ranks <= played_ranks::most; ++ranks) {
    CAPTURE(ranks);
    const auto whole = arange({3, 13}, 1);
    const auto sums = arange({3, 13}, static_cast<float>(ranks * (ranks + 1) / 2), static_cast<float>(ranks));
    cluster.succeed(ranks, [&](rank_communicator& self, client& host) -> caf::error {
      tensor_group over{self, host, played_ranks::limit};
      const auto mine = *shard_of(whole, self.rank(), ranks);
      if (auto problem = differs(gather_parameter(over, mine, whole.shape()), whole))
        return problem;
      for (auto& shape : std::vector<std::vector<uint64_t>>{{3, 130}, {uint64_t{1} << 40, 1u << 30}, {}}) {
        auto other = gather_parameter(over, mine, shape);
        if (other || code_of(other.error()) != errc::invalid_argument)
          return make_error(errc::corrupt, "a shard of something else was gathered");
      }
      return differs(reduce_gradient(over, arange({3, 13}, static_cast<float>(self.rank() + 1))),
                     *shard_of(sums, self.rank(), ranks));
    });
  }
}

TEST_CASE("data parallel: gradients of (rank - p)^2 are added up, and p goes from 2 to 1.4") {
  played_ranks cluster;
  cluster.succeed(2, [](rank_communicator& self, client& host) -> caf::error {
    tensor_group over{self, host, played_ranks::limit};
    float p = 2;
    const float gradient = 2 * (p - static_cast<float>(self.rank()));
    if (gradient != (self.rank() == 0 ? 4 : 2))
      return make_error(errc::corrupt, fmt::format("the gradient is {}", gradient));
    auto sum = over.all_reduce({&gradient, 1});
    if (auto problem = differs(sum, std::vector<float>{6}))
      return problem;
    p -= .1F * sum->front();
    return std::abs(p - 1.4F) < 1e-6F ? caf::error{} : make_error(errc::corrupt, fmt::format("p is {}", p));
  });
}
