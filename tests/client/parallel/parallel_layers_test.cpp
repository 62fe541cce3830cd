// Tensor parallelism by hand, with the figures of the exercise that it comes from, and beside a single rank.
#include "client/parallel/linear_layer.hpp"
#include "tests/client/parallel/played_ranks.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::parallel;

namespace {

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
    cluster.succeed(ranks, [&](rank_communicator& self, client& host) -> caf::error {
      const auto rows = [&](const tensor& of) { return *cut_first_axis(of, {2 * self.rank(), 2 * self.rank() + 2}); };
      const auto part = [&](const tensor& of) { return *part_of_last_axis(of, self.rank(), ranks); };
      const megatron_pair mine{part(alone.first_weight), part(alone.first_bias), rows(alone.second_weight),
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
                                                        {back->first_weight, part(first->w)},
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
