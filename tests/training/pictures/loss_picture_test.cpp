#include "training/pictures/loss_picture.hpp"

#include <doctest/doctest.h>

#include <cstdio>

using namespace ringmaster::training;

namespace {

struct drawn_line {
  double x1, y1, x2, y2;
};

/// The picture's lines of that width, in their order.
std::vector<drawn_line> lines_of(const std::string& svg, const std::string& colour, const std::string& width) {
  std::vector<drawn_line> result;
  for (size_t at = svg.find("<line "); at != svg.npos; at = svg.find("<line ", at + 1)) {
    const auto text = svg.substr(at, svg.find("/>", at) - at);
    drawn_line x{};
    REQUIRE(std::sscanf(text.c_str(), "<line x1=\"%lf\" y1=\"%lf\" x2=\"%lf\" y2=\"%lf\"", &x.x1, &x.y1, &x.x2, &x.y2)
            == 4);
    if (text.find(colour) != text.npos && text.find("stroke-width=\"" + width + "\"") != text.npos)
      result.push_back(x);
  }
  return result;
}

loss_curve falling(size_t steps) {
  loss_curve result;
  for (size_t i = 0; i < steps; ++i)
    result.steps.push_back(static_cast<double>(steps - i));
  return result;
}

} // namespace

TEST_CASE("loss picture: steps are joined, and the mean is that of the latest fiftieth of any number of steps") {
  for (size_t steps : {12u, 100u, 7000u}) {
    const auto svg = picture_of(falling(steps));
    const auto each = lines_of(svg, "#b8cbe6", "1"), mean = lines_of(svg, "#1f5fa8", "2");
    REQUIRE(mean.size() == std::min<size_t>(steps, 700) - 1);
    REQUIRE(each.size() >= mean.size());
    for (size_t i = 1; i < mean.size(); ++i) {
      CHECK(mean[i].x1 == mean[i - 1].x2);
      CHECK(mean[i].y1 == mean[i - 1].y2);
    }
    if (steps <= 700)
      for (size_t i = 1; i < each.size(); ++i)
        CHECK(each[i].y1 == each[i - 1].y2);
    // The loss falls by 316 pixels: the mean is behind by half of its window, a hundredth of that at most.
    CHECK(mean.back().y2 == doctest::Approx(each.back().y2).epsilon(0.02));
    CHECK(mean.front().y1 == doctest::Approx(56).epsilon(0.01));
  }
}

TEST_CASE("loss picture: a run of one step is a point, and a yardstick is a horizontal line") {
  auto one = falling(1);
  CHECK(picture_of(one).find("<circle ") != std::string::npos);
  CHECK(picture_of(falling(2)).find("<circle ") == std::string::npos);
  one.measure = "bits a byte";
  one.beside = {"counts alone", 2};
  const auto svg = picture_of(one);
  CHECK(svg.find(">bits a byte: each step, thin;") != std::string::npos);
  CHECK(svg.find(">counts alone</text>") != std::string::npos);
  const auto across = lines_of(svg, "#c4541a", "1");
  REQUIRE(across.size() == 1);
  CHECK(across[0].y1 == across[0].y2);
  CHECK(across[0].y1 >= 56); // the largest that there is
}
