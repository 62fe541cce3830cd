// Trains a perceptron, 784-128-10, on drawn digits: four ranks, data parallel, each step's gradients added among their
// devices; and evaluates it on digits that it has not seen.
//
//   build/release/examples/train_mlp
//
// prints, the same each time,
//
//   epoch 1: loss 1.5765 as it was trained; 416 of 500 held-out synthetic digits right, loss 0.9018
//   ...
//   epoch 4: loss 0.2278 as it was trained; 475 of 500 held-out synthetic digits right, loss 0.2340
#include <ringmaster/training_run.hpp>

#include <cstdio>

using namespace ringmaster;

int main(int argc, char** argv) {
  return run_main(argc, argv, [](cluster& home) {
    constexpr uint64_t seed = 1234;
    training_settings settings;
    settings.layers = perceptron({28 * 28, 128, 10});
    settings.data = synthetic_digits(seed, 3000, 500).value();
    settings.strategy = "ddp";
    settings.optimizer = {.rule = optimizer_settings::kind::adam, .rate = 1e-3};
    settings.ranks = 4;
    settings.epochs = 4;
    settings.global_batch = 50; // of all ranks together
    settings.uneven = true;     // 50 are 13, 13, 12 and 12
    settings.deterministic = true;
    settings.seed = seed;
    training_observer observer;
    observer.on_epoch = [](const epoch_result& x) {
      std::printf("epoch %lu: loss %.4f as it was trained; %lu of %lu held-out synthetic digits right, loss %.4f\n",
                  x.epoch, x.loss, x.held_out_right, x.held_out_samples, x.held_out_loss);
    };
    observer.on_note = [](const std::string& text) { std::printf("%s\n", text.c_str()); };
    train(home, settings, observer).value();
  });
}
