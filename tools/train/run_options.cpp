#include "tools/train/run_options.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/configuration/places.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/console/output_file.hpp"
#include "training/computed/sampled_batches.hpp"
#include "training/computed/step_world.hpp"
#include "training/data/data_folder.hpp"
#include "training/data/stored_images.hpp"
#include "training/data/synthetic_digits.hpp"
#include "training/layers/plain_layers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>

namespace ringmaster {

namespace {

using namespace training;

caf::expected<model_layers> make_perceptron(const data_set& data, const model_wishes& wishes) {
  TRY(sizes, perceptron_sizes(data, wishes));
  return perceptron(*sizes);
}

std::vector<trained_model>& known_models() {
  static std::vector<trained_model> all{
    {"mlp", "linear layers with ReLU between them, of --sizes", make_perceptron, false, true}};
  return all;
}

} // namespace

caf::expected<std::vector<uint64_t>> perceptron_sizes(const data_set& data, const model_wishes& wishes) {
  if (data.labels_each() != 1)
    return invalid(fmt::format("mlp is for images, and {} has {} labels a sample", data.name(), data.labels_each()));
  std::vector<uint64_t> sizes{data.shape().elements()};
  sizes.insert(sizes.end(), wishes.sizes.begin(), wishes.sizes.end());
  sizes.push_back(data.label_count());
  return sizes;
}

std::span<const trained_model> trained_models() {
  return known_models();
}

const trained_model* trained_model_of(std::string_view name) {
  auto& all = known_models();
  auto found = std::ranges::find(all, name, &trained_model::name);
  return found == all.end() ? nullptr : &*found;
}

void register_trained_model(const trained_model& added) {
  auto& all = known_models();
  auto found = std::ranges::find(all, added.name, &trained_model::name);
  if (found == all.end())
    all.push_back(added);
  else
    *found = added;
}

namespace {

using namespace training;

constexpr uint32_t ranks_max = 64, ranks_alone = 2;
constexpr uint32_t samples_drawn = 8000, window_bytes = 64;
constexpr uint64_t size_max = 1 << 20;
constexpr uint32_t held_out_max = 10'000; ///< Samples on which an epoch is evaluated.

caf::expected<double> parse_rate(const std::string& text) {
  constexpr double most = 1e38; // fits into float32
  const auto x = decimal_in(std::string_view{text}.substr(text.starts_with('+')));
  if (!x || !(*x >= 0 && *x <= most))
    return invalid(fmt::format("\"{}\" is not a number from 0 to {:g}, such as 0.001", text, most));
  return *x;
}

/// "128" or "256-64".
caf::expected<std::vector<uint64_t>> parse_sizes(const std::string& text) {
  std::vector<uint64_t> result;
  for (size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find('-', at), text.size());
    auto one = parse_whole(text.substr(at, end - at), 1, size_max);
    if (!one)
      return invalid(fmt::format("\"{}\" is not a list of sizes such as 256-64: {}", text, render(one.error())));
    result.push_back(*one);
    at = end + 1;
  }
  return result;
}

std::string known_model_lines() {
  std::string result;
  for (auto& x : trained_models())
    result += fmt::format("  {:<19} {}\n", x.name, x.what);
  return result;
}

/// The sources and documents that this program was built from.
std::optional<std::filesystem::path> own_texts() {
  auto configuration = find_configuration();
  if (!configuration)
    return std::nullopt;
  auto root = configuration->parent_path().parent_path();
  std::error_code ignored;
  return std::filesystem::exists(root / "CMakeLists.txt", ignored) ? std::optional{root} : std::nullopt;
}

std::vector<std::string> model_names() {
  std::vector<std::string> result;
  for (auto& x : trained_models())
    result.emplace_back(x.name);
  return result;
}

caf::expected<opened_data> drawn_digits(uint64_t seed, uint32_t count) {
  return make_synthetic_digits(seed, count, std::max(count / 6, 1u));
}

} // namespace

void run_options::add_to(option_table& table, const std::string& called) {
  ranks = 0; // not given
  trained.global_batch = 64;
  data_option = "--data-ranks";
  table.form("[options]");
  table.about("Trains a model for real, on simulated devices: a strategy's program on every rank, with tensors in the "
              "devices' memory and the cluster's collectives. A device that dies costs the step under way: the "
              "others repeat it. The models:\n\n"
              + known_model_lines()
              + (trained_models().size() > 1 ? "" : "\nringmaster-train (./run train) has others.\n"));
  table.closing("The strategies:\n\n" + known_strategies());
  add_model_to(table);
  add_data_to(table);
  add_learning_to(table);
  add_results_to(table);
  table.add_example(called + " --strategy zero3 --ranks 4 --epochs 5", "an MLP on drawn digits");
}

void run_options::add_model_to(option_table& table) {
  table
    .parsed("--model", model,
            [](const std::string& text) -> caf::expected<const trained_model*> {
              if (auto* found = trained_model_of(text))
                return found;
              return invalid(fmt::format("there is no model \"{}\" here; there are {}{}", text,
                                         fmt::join(model_names(), ", "),
                                         trained_models().size() == 1 ? "; others need libtorch: ./run train" : ""));
            })
    .says("M", "one of these")
    .offers(model_names())
    .otherwise(std::string{model->name});
  strategy_options::add_to(table, ranks_max);
  table.option_named("--ranks").otherwise(fmt::format("{}; under a launcher, the number that it has started",
                                                      ranks_alone));
  table.option_named("--micro-batch").otherwise("4 micro-batches a stage in pipelines, else all samples of a rank");
  table.option_named("--strategy").says("S", "one of these").otherwise("ddp; with --virtual-ranks ddp-ordered");
  table.parsed("--sizes", sizes, parse_sizes)
    .says("N-N", "of the layers between input and output, of mlp")
    .otherwise("128");
}

void run_options::add_data_to(option_table& table) {
  table.file("--data", data)
    .says("DIR",
          "a folder with the files of MNIST, CIFAR-10 or CIFAR-100, or with a folder that has them; of bytes, with "
          "texts")
    .otherwise("digits from a seeded generator; for bytes, this program's sources and documents");
  table.number("--samples", samples, 10, 1 << 24)
    .says("N", "of drawn digits; a sixth as many are held out")
    .otherwise(std::to_string(samples_drawn));
  if (std::ranges::any_of(trained_models(), &trained_model::of_text)) {
    const model_wishes others;
    table.number("--window", window, 2, 4096)
      .says("N", "bytes of a text that a sample has")
      .otherwise(std::to_string(window_bytes));
    table.number("--width", width, 4, 4096)
      .says("N", "of a transformer's positions, a multiple of 4 heads")
      .otherwise(std::to_string(others.width));
    table.number("--blocks", blocks, 1, 256)
      .says("N", "of a transformer: attention and feed-forward")
      .otherwise(std::to_string(others.blocks));
  }
}

void run_options::add_learning_to(option_table& table) {
  table.number("--epochs", epochs, 1, 1'000'000).says("E", "how often each sample is learned from");
  table
    .parsed("--optimizer", by.kind,
            [](const std::string& text) -> caf::expected<optimizer_kind> {
              for (auto x : {optimizer_kind::sgd, optimizer_kind::adam, optimizer_kind::adamw})
                if (name_of(x) == text)
                  return x;
              return invalid(fmt::format("there is no optimizer \"{}\"; there are sgd, adam and adamw", text));
            })
    .says("O", "sgd, adam or adamw")
    .offers({"sgd", "adam", "adamw"})
    .otherwise("adam");
  table.parsed("--lr", by.rate, parse_rate).says("X", "the learning rate").otherwise("0.001");
  table.parsed("--weight-decay", by.weight_decay, parse_rate).says("X", "how far weights shrink").otherwise("0");
  table.number("--seed", seed, 0).says("N", "of the first weights, the samples' order and what is drawn");
  table.word("--precision", precision_name, {"float32", "float64"}).says("P", "float32 or float64");
  table.flag("--deterministic", deterministic).says("sums are added in the order of ranks: the same bits each time");
  table.flag("--mirror", mirror)
    .says("the host keeps a second copy of the model as of each step where one device alone has a part of it, as under "
          "the ZeROs, fsdp, tensor and pipelines; this is the default");
  table.flag("--no-mirror", no_mirror)
    .says("no such copy: the loss of such a device goes back to the latest checkpoint or end of an epoch");
}

void run_options::add_results_to(option_table& table) {
  table.file("--checkpoint", checkpoint)
    .says("DIR", "writes the model there after each epoch, as safetensors, and keeps the latest three");
  table.flag("--resume", resume).says("resumes from the newest checkpoint, with any strategy, on any number of ranks");
  table.number("--kill", kill_at, 1)
    .says("STEP", "kills the last rank's device in that step, or just after it on a busy machine, to see how the run "
                  "continues");
  table.flag("--json", json).says("one object instead of the text");
  table.flag("--profile", predicts)
    .says("times the operations of some steps, and compares with the simulator under these costs");
  table.file("--trace", trace)
    .says("FILE", "one of these as a trace for ui.perfetto.dev or chrome://tracing, beside the simulated one");
  table.file("--svg", svg).says("FILE", "a picture of the loss");
  table.file("--tensorboard", tensorboard)
    .says("DIR", "writes loss, accuracy and speed there as it trains, for `tensorboard --logdir DIR`");
}

caf::error run_options::check_ranks(const std::optional<launched_process>& started) {
  if (started && ranks != 0 && ranks != started->world_size)
    return invalid(fmt::format("--ranks {}: {} has started {}: omit the option", ranks, started->launcher,
                               counted(started->world_size, "rank")));
  if (ranks == 0)
    ranks = started ? started->world_size : ranks_alone;
  if (ranks > ranks_max)
    return invalid(fmt::format("{} ranks are more than can train together, {}", ranks, ranks_max));
  return caf::none;
}

caf::error run_options::unused_option() const {
  auto refused = [&](std::string_view option, const std::string& why) {
    return invalid(fmt::format("{}: {}", option, why));
  };
  if (samples && !data.empty())
    return refused("--samples",
                   "says how many digits are drawn; with --data there are as many samples as its files hold");
  if (samples && model->of_text)
    return refused("--samples",
                   fmt::format("says how many digits are drawn; {} learns from all windows of its texts", model->name));
  if (sizes && !model->takes_sizes)
    return refused("--sizes", fmt::format("{} has layers of its own; the option is for mlp", model->name));
  if (model->of_text)
    return caf::none;
  if (window)
    return refused("--window", fmt::format("{} learns from images, which have none", model->name));
  if (width || blocks)
    return refused(width ? "--width" : "--blocks", fmt::format("{} is no transformer; bytes is", model->name));
  return caf::none;
}

caf::error run_options::check(const std::optional<launched_process>& started) {
  if (all)
    return invalid("--strategy all is for simulate train: here it is one strategy, such as ddp");
  RETURN_ERROR(check_ranks(started));
  RETURN_ERROR(unused_option());
  if (which == nullptr)
    which = strategy_of(trained.virtual_ranks != 0 ? "ddp-ordered" : "ddp");
  if (mirror && no_mirror)
    return invalid("--mirror and --no-mirror cannot both be given");
  if (resume && checkpoint.empty())
    return invalid("--resume needs --checkpoint DIR, the folder to resume from");
  if (trained.global_batch < ranks && which->shares == sharing::none)
    return invalid(fmt::format("--global-batch {}: there is none for each of {} ranks; at least {} would be",
                               trained.global_batch, ranks, ranks));
  return caf::none;
}

caf::expected<opened_data> run_options::open_data() const {
  if (!model->of_text && data.empty())
    return drawn_digits(seed, samples.value_or(samples_drawn));
  if (!model->of_text) {
    auto images = open_image_folder(data);
    if (images || code_of(images.error()) != errc::invalid_argument)
      return images;
    if (auto found = open_data_folder(data); found && found->training->labels_each() != 1)
      return invalid(
        fmt::format("{}: {} needs images, and neither {}, {} nor {} lie there, or in a folder within; what "
                    "lies there is text, which the model bytes of ringmaster-train takes",
                    data, model->name, idx_files, cifar_files, cifar_100_files));
    return images;
  }
  auto folder = data.empty() ? own_texts() : std::optional{std::filesystem::path{data}};
  if (!folder)
    return invalid(fmt::format("{} needs --data DIR, a folder of texts: this program's own are not here", model->name));
  return open_data_folder(*folder, {.window = window.value_or(window_bytes), .seed = seed});
}

caf::expected<run_settings> run_options::settings() {
  run_settings result;
  RETURN_ERROR(check_outputs_differ({{"--svg", svg}, {"--trace", trace}}));
  TRY(opened, open_data());
  result.data = std::move(*opened);
  if (data.empty() && !model->of_text) {
    result.data.training = std::make_shared<remembered_data>(result.data.training);
    result.data.held_out = std::make_shared<remembered_data>(result.data.held_out);
  }
  model_wishes wishes;
  wishes.sizes = sizes.value_or(wishes.sizes);
  wishes.width = width.value_or(wishes.width);
  wishes.blocks = blocks.value_or(wishes.blocks);
  TRY(layers, model->make(*result.data.training, wishes));
  auto& job = result.job;
  trained.layers = static_cast<uint32_t>(layers->size());
  trained.uneven = true;
  trained.for_real = true;
  trained.parallel.chunks = chunks.value_or(which->usual_chunks); // `choose` sets it, too, and uses it for the shape
  if (micro_batch && *micro_batch > trained.global_batch)
    return invalid(fmt::format("--micro-batch {}: a global batch has {}", *micro_batch,
                               counted(trained.global_batch, "sample")));
  job.shape = trained;
  job.strategy = which;
  job.layers = std::move(*layers);
  job.all_at_once = !micro_batch;
  // Stages work on different micro-batches at the same time; ranks that share a layer gain nothing from smaller ones.
  if (job.all_at_once && which->is_pipeline())
    micro_batch = step_shape(job, {ranks, setting_of(job.shape)}).micro_batch;
  trained.micro_batch = micro_batch.value_or(trained.micro_batch);
  RETURN_ERROR(which->check(trained, ranks));
  if (!micro_batch && which->cut == batch_cut::always)
    micro_batch = samples_of_a_rank(*which, trained, ranks);
  RETURN_ERROR(choose());
  for (auto& each : job.layers)
    trained.replicated = trained.replicated || each->replicated() > 0;
  job.shape = trained;
  job.as = precision_name == "float64" ? precision::float64 : precision::float32;
  job.update = by;
  job.seed = seed;
  result.ranks = ranks;
  result.epochs = epochs;
  result.deterministic = deterministic;
  result.mirror = !no_mirror;
  result.checkpoints = checkpoint;
  result.resume = resume;
  result.held_out_max = held_out_max;
  result.profiles = predicts || !trace.empty();
  result.kill_at = kill_at;
  return result;
}

} // namespace ringmaster
