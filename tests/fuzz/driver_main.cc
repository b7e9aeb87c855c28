// SPDX-License-Identifier: Apache-2.0
// Feeds a fuzz target (LLVMFuzzerTestOneInput) with mutated seeds: the same inputs for the same --seed, so
// that the run in CI is a test like any other. Needs no fuzzing engine; built with
// -fsanitize-coverage=trace-pc (./dev fuzz), an input that reaches new code is kept and mutated further.
//
//   fuzz_onnx_model [--runs N | --seconds S] [--seed N] [--corpus FOLDER]
//   fuzz_onnx_model FILE...           runs these inputs, once each: to look at a crash
#include <signal.h>
#include <sys/time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Optional: a target may add seeds that it makes itself.
extern "C" __attribute__((weak)) void FuzzSeeds(std::vector<std::string>* seeds);
extern const char fuzz_seeds_folder[];  // the build writes it
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

constexpr size_t kLargestInput = 1 << 20, kLargestCorpus = 4096;
constexpr unsigned kSecondsPerInput = 20;  // an input that takes longer is a defect, too

// ---- coverage: one bit per place in the code, set by the compiler's call in every block
// ---------------------------------

constexpr size_t kPlaces = 1 << 18;
uint8_t seen_places[kPlaces];
bool found_new_place = false;

// ---- the input being run, kept where a signal handler can save it
// -------------------------------------------------------

const uint8_t* current_data = nullptr;
size_t current_size = 0;
char crash_path[4096];

void save_current_input() {
  if (!current_data) return;
  FILE* file = std::fopen(crash_path, "wb");
  if (file) {
    std::fwrite(current_data, 1, current_size, file);
    std::fclose(file);
    std::fprintf(stderr, "\nthe input is saved in %s; run this program with it to see the failure again\n", crash_path);
  }
  current_data = nullptr;
}

void on_signal(int number) {
  if (number == SIGPROF)
    std::fprintf(stderr, "\nan input takes more than %u seconds of the processor\n", kSecondsPerInput);
  save_current_input();
  signal(number, SIG_DFL);
  raise(number == SIGPROF ? SIGABRT : number);
}

// Of processor time, which a machine that stands still does not use up.
void allow_seconds(unsigned seconds) {
  const itimerval left = {{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &left, nullptr);
}

bool run_one(const std::string& input) {
  // A copy of exactly the input's size: a sanitizer sees reads beyond its end.
  std::vector<uint8_t> copy(input.begin(), input.end());
  current_data = copy.data();
  current_size = copy.size();
  found_new_place = false;
  allow_seconds(kSecondsPerInput);
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
  allow_seconds(0);
  current_data = nullptr;
  return found_new_place;
}

// ---- mutation
// ----------------------------------------------------------------------------------------------------------

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  size_t below(size_t n) { return n == 0 ? 0 : size_t(random_() % n); }

  std::string mutate(const std::vector<std::string>& corpus) {
    std::string input = corpus[below(corpus.size())];
    for (size_t count = size_t(1) << below(5); count > 0; --count) step(input, corpus);
    if (input.size() > kLargestInput) input.resize(kLargestInput);
    return input;
  }

 private:
  void step(std::string& input, const std::vector<std::string>& corpus) {
    if (input.empty()) {
      input.push_back(char(random_()));
      return;
    }
    const size_t at = below(input.size());
    switch (below(9)) {
      case 0:
        input[at] = char(input[at] ^ (1 << below(8)));
        break;
      case 1:
        input[at] = char(random_());
        break;
      case 2:
        input.resize(at);
        break;
      case 3:
        input.erase(at, 1 + below(std::min<size_t>(64, input.size() - at)));
        break;
      case 4:
        input.insert(at, 1 + below(16), char(random_()));
        break;
      case 5: {  // the edges of integers, little-endian, of every width
        static constexpr uint64_t kEdges[] = {0,
                                              1,
                                              0x7f,
                                              0x80,
                                              0xff,
                                              0x7fff,
                                              0xffff,
                                              0x7fffffff,
                                              0x80000000,
                                              0xffffffff,
                                              uint64_t(1) << 48,
                                              ~uint64_t(0) >> 1,
                                              uint64_t(1) << 63,
                                              ~uint64_t(0)};
        const uint64_t value = kEdges[below(std::size(kEdges))];
        const size_t width = std::min(size_t(1) << below(4), input.size() - at);
        std::memcpy(&input[at], &value, width);
        break;
      }
      case 6: {  // repeat a part of it
        const std::string part = input.substr(at, 1 + below(256));
        input.insert(below(input.size()), part);
        break;
      }
      case 7: {  // a part of another seed, over what is here or between
        const std::string& other = corpus[below(corpus.size())];
        const std::string part = other.substr(below(other.size()), 1 + below(512));
        if (below(2))
          input.replace(at, part.size(), part);
        else
          input.insert(at, part);
        break;
      }
      case 8: {  // a digit in a text: another number
        const size_t digit = input.find_first_of("0123456789", at);
        if (digit != std::string::npos) input.replace(digit, 1, std::to_string(random_() >> below(64)));
        break;
      }
    }
  }

  std::mt19937_64 random_;
};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

extern "C" void __sanitizer_cov_trace_pc() {
  const uintptr_t place = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  uint8_t& seen = seen_places[(place ^ (place >> 18)) % kPlaces];
  if (!seen) {
    seen = 1;
    found_new_place = true;
  }
}

int main(int argc, char** argv) {
  uint64_t seed = 1, runs = 5000;
  double seconds = 0;
  std::vector<std::string> files;
  std::string corpus_folder = fuzz_seeds_folder;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0)
      files.push_back(word);
    else if (i + 1 == argc)
      return std::fprintf(stderr, "%s needs a value\n", word.c_str()), 2;
    else if (word == "--runs")
      runs = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--seconds")
      seconds = std::strtod(argv[++i], nullptr);
    else if (word == "--seed")
      seed = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--corpus")
      corpus_folder = argv[++i];
    else
      return std::fprintf(stderr, "unknown option %s\n", word.c_str()), 2;
  }
  std::snprintf(crash_path, sizeof crash_path, "%s.crash", argv[0]);
  for (int number : {SIGPROF, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(number, on_signal);
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(save_current_input);

  if (!files.empty()) {
    for (const std::string& file : files) run_one(read_file(file));
    std::printf("%zu inputs run\n", files.size());
    return 0;
  }
  std::vector<std::string> corpus;
  if (std::filesystem::is_directory(corpus_folder)) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus_folder))
      if (entry.is_regular_file() && entry.file_size() <= kLargestInput) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());  // the order of a folder differs between machines
    for (const auto& path : paths) corpus.push_back(read_file(path));
  }
  if (FuzzSeeds) FuzzSeeds(&corpus);
  corpus.push_back("");
  const size_t seeds = corpus.size();
  for (size_t i = 0; i < seeds; ++i) run_one(corpus[i]);

  Mutator mutator(seed);
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  uint64_t done = 0;
  for (; seconds > 0 ? elapsed() < seconds : done < runs; ++done) {
    std::string input = mutator.mutate(corpus);
    if (run_one(input) && corpus.size() < kLargestCorpus) corpus.push_back(std::move(input));
  }
  std::printf("%llu inputs from %zu seeds, %zu kept for reaching new code, %.1f s, no defect\n",
              static_cast<unsigned long long>(done), seeds, corpus.size() - seeds, elapsed());
  return 0;
}
