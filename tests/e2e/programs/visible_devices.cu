// CUDA_VISIBLE_DEVICES chooses a program's devices and their order. It is read once a process, so
// that each list has a process of its own, which is told what it should see.
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/programs/check.h"

constexpr char kVariable[] = "CUDA_VISIBLE_DEVICES";
constexpr int kValue = 41;

__global__ void Set(int* to, int value) { *to = value; }
__global__ void Increment(int* value) { ++*value; }

// The devices that the program sees, by what names them on the bus.
static std::vector<std::string> SeenDevices() {
  int count = -1;
  const cudaError_t error = cudaGetDeviceCount(&count);
  REQUIRE(error == (count == 0 ? cudaErrorNoDevice : cudaSuccess));
  std::vector<std::string> devices;
  for (int device = 0; device < count; ++device) {
    char id[32] = {};
    CUDA(cudaDeviceGetPCIBusId(id, sizeof id, device));
    devices.emplace_back(id);
  }
  return devices;
}

static std::string UuidOf(int device) {
  cudaDeviceProp properties{};
  CUDA(cudaGetDeviceProperties(&properties, device));
  std::string uuid = "GPU";
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x",
                  static_cast<unsigned char>(properties.uuid.bytes[i]));
    const bool begins_group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    uuid += (begins_group ? "-" : "") + std::string(digits);
  }
  return uuid;
}

static void RequireUsable(int device) {
  CUDA(cudaSetDevice(device));
  int* on_device = nullptr;
  int* pinned = nullptr;
  CUDA(cudaMalloc(&on_device, sizeof *on_device));
  CUDA(cudaMallocHost(&pinned, sizeof *pinned));
  cudaPointerAttributes attributes{};
  CUDA(cudaPointerGetAttributes(&attributes, on_device));
  REQUIRE(attributes.device == device);
  Set<<<1, 1>>>(on_device, kValue);
  Increment<<<1, 1>>>(on_device);
  CUDA(cudaMemcpy(pinned, on_device, sizeof *pinned, cudaMemcpyDeviceToHost));
  REQUIRE(*pinned == kValue + 1);
  CUDA(cudaFree(on_device));
  CUDA(cudaFreeHost(pinned));
}

static void RequireCopiesBetween(int from, int to) {
  int* source = nullptr;
  int* target = nullptr;
  CUDA(cudaSetDevice(from));
  CUDA(cudaMalloc(&source, sizeof *source));
  Set<<<1, 1>>>(source, kValue);
  CUDA(cudaSetDevice(to));
  CUDA(cudaMalloc(&target, sizeof *target));
  CUDA(cudaMemcpyPeer(target, to, source, from, sizeof *target));
  int value = 0;
  CUDA(cudaMemcpy(&value, target, sizeof value, cudaMemcpyDeviceToHost));
  REQUIRE(value == kValue);
  CUDA(cudaFree(source));
  CUDA(cudaFree(target));
}

static int RequireDevices(const std::vector<std::string>& expected) {
  REQUIRE(SeenDevices() == expected);
  const int count = static_cast<int>(expected.size());
  if (count == 0) {
    void* memory = nullptr;
    EXPECT_CUDA(cudaMalloc(&memory, 1), cudaErrorNoDevice);
    return 0;
  }
  EXPECT_CUDA(cudaSetDevice(count), cudaErrorInvalidDevice);
  for (int device = count - 1; device >= 0; --device) RequireUsable(device);
  if (count > 1) RequireCopiesBetween(0, 1);
  std::thread([] {  // which chooses none
    int device = -1;
    CUDA(cudaGetDevice(&device));
    REQUIRE(device == 0);
    CUDA(cudaFree(nullptr));
  })
      .join();
  return 0;
}

// Runs this program again, with the list, as one that sees `expected`.
static void With(const std::string& list, const std::vector<std::string>& expected) {
  std::vector<char*> arguments = {const_cast<char*>("visible_devices"), const_cast<char*>("sees")};
  for (const std::string& id : expected) arguments.push_back(const_cast<char*>(id.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv(kVariable, list.c_str(), 1);
    execv("/proc/self/exe", arguments.data());
    _exit(127);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (status != 0) std::printf("with %s=%s\n", kVariable, list.c_str());
  REQUIRE(status == 0);
}

int main(int argc, char** argv) {
  if (argc > 1) return RequireDevices({argv + 2, argv + argc});
  unsetenv(kVariable);
  const std::vector<std::string> all = SeenDevices();
  REQUIRE(all.size() >= 2);
  With("0", {all[0]});
  With("1", {all[1]});
  With("1,0", {all[1], all[0]});
  With("1,99,0", {all[1]});
  With(UuidOf(1) + "," + UuidOf(0), {all[1], all[0]});
  With("", {});
  With("-1", {});
  With("0,0", {});
  return Pass();
}
