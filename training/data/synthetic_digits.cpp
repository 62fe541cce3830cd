#include "training/data/synthetic_digits.hpp"

#include "messages/errc.hpp"
#include "runtime/links/link_checksum.hpp"
#include "training/data/mixed_bits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ringmaster::training {

namespace {

constexpr int image_side = 28; // pixels

/// How one digit is written: where a point of the unit square comes to, in pixels.
class hand {
public:
  explicit hand(split_mix& random) {
    const auto half = random.between(-.14, .14); // the tangent of half the angle, which takes no library's sine
    const auto cosine = (1 - half * half) / (1 + half * half), sine = 2 * half / (1 + half * half);
    const auto width = random.between(.7, 1.1) * image_side, height = random.between(.75, 1.05) * image_side;
    const auto shear = random.between(-.3, .3);
    across_ = {cosine * width, sine * width};
    down_ = {(cosine * shear - sine) * height, (sine * shear + cosine) * height};
    bend_ = {random.between(-.5, .5), random.between(-.3, .3)};
    middle_ = {image_side / 2 + random.between(-2.6, 2.6), image_side / 2 + random.between(-2.6, 2.6)};
    pen = random.between(.7, 1.7);
    ink = random.between(.6, 1);
    noise = random.between(.05, .25);
  }

  stroke_point place_of(stroke_point p) const {
    const auto x = p.x - .5 + bend_.x * (p.y - .5) * (p.y - .5), y = p.y - .5 + bend_.y * (p.x - .5) * (p.x - .5);
    return {middle_.x + across_.x * x + down_.x * y, middle_.y + across_.y * x + down_.y * y};
  }

  double pen = 1;   ///< Half its width, in pixels.
  double ink = 1;   ///< How dark it is.
  double noise = 0; ///< How far a pixel may be off.

private:
  stroke_point across_, down_, middle_, bend_;
};

class sheet {
public:
  /// A line with round ends; a pixel that it covers in part is grey.
  void draw(stroke_point a, stroke_point b, double pen) {
    const auto reach = pen + .5;
    const auto dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
    for (auto y = first(std::min(a.y, b.y) - reach); y <= last(std::max(a.y, b.y) + reach); ++y)
      for (auto x = first(std::min(a.x, b.x) - reach); x <= last(std::max(a.x, b.x) + reach); ++x) {
        const auto px = x + .5 - a.x, py = y + .5 - a.y;
        const auto along = length > 0 ? std::clamp((px * dx + py * dy) / length, 0., 1.) : 0.;
        const auto off_x = px - along * dx, off_y = py - along * dy;
        const auto distance = std::sqrt(off_x * off_x + off_y * off_y);
        auto& pixel = pixels_[static_cast<size_t>(y * image_side + x)];
        pixel = std::max(pixel, std::clamp(reach - distance, 0., 1.));
      }
  }

  std::span<const double> pixels() const { return pixels_; }

private:
  static int first(double edge) { return std::clamp(static_cast<int>(std::floor(edge)), 0, image_side - 1); }
  static int last(double edge) { return std::clamp(static_cast<int>(std::ceil(edge)), 0, image_side - 1); }

  std::array<double, image_side * image_side> pixels_{};
};

/// About normal, from -1 to 1, with a deviation of 0.29: the mean of four.
double bell(uint64_t bits) {
  auto quarter = [&](int i) { return static_cast<double>(bits >> 16 * i & 0xffff); };
  return (quarter(0) + quarter(1) + quarter(2) + quarter(3)) / (2 * 65535.) - 1;
}

} // namespace

void synthetic_digits::fill_one(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const {
  split_mix random{mixed_bits(seed_ + 1) ^ mixed_bits(uint64_t{first_} + sample)};
  const auto digit = static_cast<uint32_t>(random.next() % 10);
  if (!labels.empty())
    labels.front() = digit;
  if (input.empty())
    return;
  const hand writer{random};
  sheet paper;
  for (auto& line : strokes_of(digit))
    for (size_t i = 1; i < line.size(); ++i)
      paper.draw(writer.place_of(line[i - 1]), writer.place_of(line[i]), writer.pen);
  for (size_t i = 0; i < input.size(); ++i) {
    const auto value = std::clamp(writer.ink * paper.pixels()[i] + writer.noise * bell(random.next()), 0., 1.);
    input[i] = static_cast<float>(std::floor(value * 255 + .5)) / 255; // as a file of bytes would have it
  }
}

uint64_t synthetic_digits::digest() const {
  constexpr uint32_t version = 1; // another one where a seed's samples become others
  const uint64_t all[] = {version, seed_, first_, count_};
  return link_checksum(std::as_bytes(std::span{all}));
}

caf::expected<opened_data> make_synthetic_digits(uint64_t seed, uint32_t training, uint32_t held_out) {
  for (auto count : {training, held_out})
    if (count == 0 || count > synthetic_digits::count_max)
      return invalid(fmt::format("there cannot be {} synthetic digits: 1 to {} can be drawn", count,
                                 synthetic_digits::count_max));
  return opened_data{std::make_shared<synthetic_digits>(seed, 0, training),
                     std::make_shared<synthetic_digits>(seed, synthetic_digits::count_max, held_out)};
}

namespace {

/// Writes a stroke, in lines and in parts of ellipses.
class pen {
public:
  pen& to(double x, double y) {
    line_.push_back({x, y});
    return *this;
  }

  /// Around (x, y), in steps of 1/24 of a turn from `first` to `last`; 0 lies to the right, 6 below. The cosines are
  /// written here since a library's may differ in their last bit.
  pen& around(double x, double y, double width, double height, uint32_t first, uint32_t last) {
    constexpr std::array<double, 7> quarter{
      1, 0.96592582628906831, 0.86602540378443865, 0.70710678118654752, 0.5, 0.25881904510252076, 0};
    auto cosine = [&](uint32_t turn) {
      turn %= 24;
      turn = turn > 12 ? 24 - turn : turn;
      return turn > 6 ? -quarter[12 - turn] : quarter[turn];
    };
    for (auto turn = first; turn <= last; ++turn)
      to(x + width * cosine(turn), y + height * cosine(turn + 18));
    return *this;
  }

  operator stroke() const { return line_; }

private:
  stroke line_;
};

const std::array<std::vector<stroke>, 10>& all_strokes() {
  static const std::array<std::vector<stroke>, 10> result{{
    {pen{}.around(.5, .5, .23, .37, 0, 24)},
    {pen{}.to(.38, .28).to(.54, .12).to(.54, .88)},
    {pen{}.around(.5, .33, .22, .21, 12, 26).to(.26, .87).to(.76, .87)},
    {pen{}.around(.47, .31, .22, .19, 13, 29).around(.47, .69, .25, .2, 19, 35)},
    {pen{}.to(.6, .88).to(.6, .12).to(.24, .63).to(.8, .63)},
    {pen{}.to(.72, .13).to(.34, .13).to(.31, .46).around(.48, .65, .24, .23, 16, 33)},
    {pen{}.to(.64, .12).to(.42, .32).to(.3, .56).around(.5, .67, .21, .21, 12, 36)},
    {pen{}.to(.24, .14).to(.76, .14).to(.44, .88)},
    {pen{}.around(.5, .31, .19, .19, 0, 24), pen{}.around(.5, .69, .23, .2, 0, 24)},
    {pen{}.around(.5, .34, .21, .22, 0, 24).to(.67, .66).to(.52, .88)},
  }};
  return result;
}

} // namespace

std::span<const stroke> strokes_of(uint32_t digit) {
  return all_strokes().at(digit);
}

} // namespace ringmaster::training
