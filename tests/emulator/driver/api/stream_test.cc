#include <atomic>
#include <chrono>
#include <future>
#include <new>
#include <thread>
#include <vector>

#include "tests/emulator/driver/api/cuda_test.h"

namespace torpor::emulator {
namespace {

// Keeps a stream busy until it is opened.
class Gate {
 public:
  // Not by a host function: all host functions of a context share a thread.
  void Close(CUstream stream) {
    ASSERT_CUDA(cuMemHostAlloc(reinterpret_cast<void**>(&word_), sizeof *word_, 0));
    *word_ = 0;
    ASSERT_CUDA(cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(word_), 1,
                                    CU_STREAM_WAIT_VALUE_EQ));
  }
  void Open() { std::atomic_ref(*word_).store(1); }

 private:
  cuuint32_t* word_ = nullptr;
};

class StreamTest : public CudaTest {
 protected:
  static CUstream Create(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream stream = nullptr;
    EXPECT_CUDA(cuStreamCreate(&stream, flags));
    return stream;
  }
  static CUevent CreateEvent(unsigned flags = 0) {
    CUevent event = nullptr;
    EXPECT_CUDA(cuEventCreate(&event, flags));
    return event;
  }
  // A host function that adds one to `counter`.
  static void Count(CUstream stream, std::atomic<int>& counter) {
    ASSERT_CUDA(cuLaunchHostFunc(
        stream, [](void* data) { ++*static_cast<std::atomic<int>*>(data); }, &counter));
  }
};

TEST_F(StreamTest, WorkIsAsynchronousAndOrdered) {
  CUstream stream = Create();
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAlloc(&address, 4));
  ASSERT_CUDA(cuMemsetD32(address, 1, 1));
  Gate gate;
  gate.Close(stream);
  ASSERT_CUDA(cuMemsetD32Async(address, 2, 1, stream));
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  unsigned value = 0;
  CUstream other = Create();
  ASSERT_CUDA(cuMemcpyDtoHAsync(&value, address, 4, other));
  EXPECT_EQ(value, 1U);  // other streams go on
  gate.Open();
  ASSERT_CUDA(cuStreamSynchronize(stream));
  ASSERT_CUDA(cuMemcpyDtoH(&value, address, 4));
  EXPECT_EQ(value, 2U);
  EXPECT_CUDA(cuStreamQuery(stream));
  EXPECT_CUDA(cuStreamDestroy(stream));
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(StreamTest, PageableSourceMayBeReusedAtOnce) {
  CUstream stream = Create();
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAlloc(&address, 4));
  Gate gate;
  gate.Close(stream);
  unsigned value = 7;
  ASSERT_CUDA(cuMemcpyHtoDAsync(address, &value, 4, stream));
  value = 8;
  gate.Open();
  ASSERT_CUDA(cuStreamSynchronize(stream));
  ASSERT_CUDA(cuMemcpyDtoH(&value, address, 4));
  EXPECT_EQ(value, 7U);
}

TEST_F(StreamTest, FreedSourceIsAnErrorWhetherTheStreamIsBusyOrNot) {
  CUstream stream = Create();
  CUdeviceptr target = 0;
  CUdeviceptr freed = 0;
  ASSERT_CUDA(cuMemAlloc(&target, 64));
  ASSERT_CUDA(cuMemAlloc(&freed, 64));
  ASSERT_CUDA(cuMemFree(freed));
  EXPECT_EQ(cuMemcpyAsync(target, freed, 64, stream), CUDA_ERROR_INVALID_VALUE);
  Gate gate;
  gate.Close(stream);
  EXPECT_EQ(cuMemcpyAsync(target, freed, 64, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyAsync(freed, target, 64, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoDAsync(target, reinterpret_cast<void*>(freed), 64, stream),
            CUDA_ERROR_INVALID_VALUE);
  gate.Open();
  EXPECT_CUDA(cuStreamSynchronize(stream));
}

TEST_F(StreamTest, LegacyStreamWaitsForBlockingStreams) {
  CUstream blocking = Create(CU_STREAM_DEFAULT);
  CUstream free = Create(CU_STREAM_NON_BLOCKING);
  std::atomic<int> counter{0};
  Gate gate;
  gate.Close(blocking);
  Count(nullptr, counter);
  Count(blocking, counter);  // behind the legacy stream's work in its turn
  std::atomic<int> free_counter{0};
  Count(free, free_counter);
  ASSERT_CUDA(cuStreamSynchronize(free));
  EXPECT_EQ(free_counter, 1);
  EXPECT_EQ(counter, 0);
  EXPECT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  gate.Open();
  ASSERT_CUDA(cuStreamSynchronize(nullptr));
  EXPECT_GE(counter, 1);
  ASSERT_CUDA(cuStreamSynchronize(blocking));
  EXPECT_EQ(counter, 2);
}

TEST_F(StreamTest, BlockingStreamWaitsForTheLegacyStream) {
  CUstream blocking = Create(CU_STREAM_DEFAULT);
  std::atomic<int> counter{0};
  Gate gate;
  gate.Close(CU_STREAM_LEGACY);
  Count(blocking, counter);
  EXPECT_EQ(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
  gate.Open();
  ASSERT_CUDA(cuStreamSynchronize(blocking));
  EXPECT_EQ(counter, 1);
}

TEST_F(StreamTest, PerThreadStreamsAreDifferent) {
  std::atomic<int> counter{0};
  Gate gate;
  gate.Close(CU_STREAM_PER_THREAD);
  std::thread([&] {
    ASSERT_CUDA(cuCtxSetCurrent(context_));
    Count(CU_STREAM_PER_THREAD, counter);
    ASSERT_CUDA(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  }).join();
  EXPECT_EQ(counter, 1);
  EXPECT_EQ(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
  gate.Open();
  EXPECT_CUDA(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

TEST_F(StreamTest, EventsOrderStreams) {
  CUstream first = Create();
  CUstream second = Create();
  CUevent event = CreateEvent(CU_EVENT_DISABLE_TIMING);
  EXPECT_CUDA(cuEventQuery(event));  // never recorded: complete
  std::atomic<int> counter{0};
  Gate gate;
  gate.Close(first);
  ASSERT_CUDA(cuEventRecord(event, first));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  ASSERT_CUDA(cuStreamWaitEvent(second, event, 0));
  Count(second, counter);
  EXPECT_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  gate.Open();
  ASSERT_CUDA(cuStreamSynchronize(second));
  EXPECT_EQ(counter, 1);
  EXPECT_CUDA(cuEventSynchronize(event));
  EXPECT_CUDA(cuEventDestroy(event));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(StreamTest, WaitHoldsToTheRecordingItSaw) {
  CUstream first = Create();
  CUstream second = Create();
  CUstream third = Create();
  CUevent event = CreateEvent();
  Gate gate;
  ASSERT_CUDA(cuEventRecord(event, first));
  ASSERT_CUDA(cuStreamWaitEvent(second, event, 0));
  gate.Close(third);
  ASSERT_CUDA(cuEventRecord(event, third));
  EXPECT_CUDA(cuStreamSynchronize(second));
  gate.Open();
  EXPECT_CUDA(cuStreamSynchronize(third));
}

TEST_F(StreamTest, EventsMeasureTime) {
  CUstream stream = Create();
  CUevent start = CreateEvent();
  CUevent end = CreateEvent();
  float ms = -1;
  EXPECT_EQ(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_CUDA(cuEventRecord(start, stream));
  Gate gate;
  gate.Close(stream);
  ASSERT_CUDA(cuEventRecord(end, stream));
  EXPECT_EQ(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_NOT_READY);
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - began < std::chrono::milliseconds(2)) {
  }
  gate.Open();
  ASSERT_CUDA(cuEventSynchronize(end));
  ASSERT_CUDA(cuEventElapsedTime(&ms, start, end));
  EXPECT_GE(ms, 2.0F);
}

TEST_F(StreamTest, PacedCopiesTakeTheirTime) {
  CUcontext second = nullptr;
  ASSERT_CUDA(cuDevicePrimaryCtxRetain(&second, 1));
  ASSERT_CUDA(cuCtxPushCurrent(second));
  constexpr size_t kSize = 10'000'000;
  CUdeviceptr address = 0;
  void* pinned = nullptr;
  // Copies at the same time touch different memory.
  ASSERT_CUDA(cuMemAlloc(&address, 3 * kSize));
  ASSERT_CUDA(cuMemAllocHost(&pinned, 3 * kSize));
  ASSERT_CUDA(cuMemsetD8(address, 0, 3 * kSize));
  char* host = static_cast<char*>(pinned);
  CUstream up = Create();
  CUstream down = Create();
  CUstream up_too = Create();
  CUevent events[4] = {CreateEvent(), CreateEvent(), CreateEvent(), CreateEvent()};
  ASSERT_CUDA(cuEventRecord(events[0], up));
  ASSERT_CUDA(cuMemcpyHtoDAsync(address, host, kSize, up));
  ASSERT_CUDA(cuEventRecord(events[1], up));
  ASSERT_CUDA(cuMemcpyDtoHAsync(host + kSize, address + kSize, kSize, down));
  ASSERT_CUDA(cuEventRecord(events[2], down));
  ASSERT_CUDA(cuMemcpyHtoDAsync(address + 2 * kSize, host + 2 * kSize, kSize, up_too));
  ASSERT_CUDA(cuEventRecord(events[3], up_too));
  ASSERT_CUDA(cuCtxSynchronize());
  float one = 0;
  float two = 0;
  ASSERT_CUDA(cuEventElapsedTime(&one, events[0], events[1]));
  ASSERT_CUDA(cuEventElapsedTime(&two, events[0], events[3]));
  // 10 MB at 1 GB/s, and the two uploads share the link. Never earlier; later if the machine is
  // busy.
  EXPECT_GE(std::min(one, two), 10.0F);
  EXPECT_GE(std::max(one, two), 20.0F);
}

TEST_F(StreamTest, ValuesInMemoryOrderStreams) {
  CUstream waiting = Create();
  CUstream writing = Create();
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAlloc(&address, 8));
  ASSERT_CUDA(cuMemsetD8(address, 0, 8));
  std::atomic<int> counter{0};
  ASSERT_CUDA(cuStreamWaitValue32(waiting, address, 5, CU_STREAM_WAIT_VALUE_GEQ));
  Count(waiting, counter);
  ASSERT_CUDA(cuStreamWriteValue32(writing, address, 4, 0));
  EXPECT_EQ(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
  ASSERT_CUDA(cuStreamWriteValue32(writing, address, 5, 0));
  ASSERT_CUDA(cuStreamSynchronize(waiting));
  EXPECT_EQ(counter, 1);
  EXPECT_EQ(cuStreamWriteValue64(writing, address + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StreamTest, CallbacksGetTheStream) {
  CUstream stream = Create();
  CUstream seen = nullptr;
  ASSERT_CUDA(cuStreamAddCallback(
      stream,
      [](CUstream callback_stream, CUresult status, void* data) {
        EXPECT_CUDA(status);
        *static_cast<CUstream*>(data) = callback_stream;
      },
      &seen, 0));
  ASSERT_CUDA(cuStreamSynchronize(stream));
  EXPECT_EQ(seen, stream);
}

TEST_F(StreamTest, Properties) {
  CUstream stream = nullptr;
  ASSERT_CUDA(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100));
  int priority = 0;
  ASSERT_CUDA(cuStreamGetPriority(stream, &priority));
  EXPECT_EQ(priority, -5);
  unsigned flags = 0;
  ASSERT_CUDA(cuStreamGetFlags(stream, &flags));
  EXPECT_EQ(flags, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
  CUcontext context = nullptr;
  ASSERT_CUDA(cuStreamGetCtx(stream, &context));
  EXPECT_EQ(context, context_);
  unsigned long long id = 0;
  unsigned long long other = 0;
  ASSERT_CUDA(cuStreamGetId(stream, &id));
  ASSERT_CUDA(cuStreamGetId(nullptr, &other));
  EXPECT_NE(id, other);
}

TEST_F(StreamTest, DestroyedStreamFinishesItsWork) {
  CUstream stream = Create();
  std::promise<void> done;
  Gate gate;
  gate.Close(stream);
  ASSERT_CUDA(cuLaunchHostFunc(
      stream, [](void* data) { static_cast<std::promise<void>*>(data)->set_value(); }, &done));
  ASSERT_CUDA(cuStreamDestroy(stream));
  gate.Open();
  done.get_future().wait();
}

TEST_F(StreamTest, DestroyedStreamIsWaitedFor) {
  CUdeviceptr word = 0;
  ASSERT_CUDA(cuMemAlloc(&word, 4));
  ASSERT_CUDA(cuMemsetD32(word, 0, 1));
  const auto destroy_busy_stream = [&](Gate& gate, unsigned value) {
    CUstream stream = Create(CU_STREAM_DEFAULT);
    gate.Close(stream);
    ASSERT_CUDA(cuMemsetD32Async(word, value, 1, stream));
    ASSERT_CUDA(cuStreamDestroy(stream));
  };
  unsigned seen = 0;
  Gate first;
  destroy_busy_stream(first, 1);
  EXPECT_EQ(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
  std::thread opener([&] { first.Open(); });
  ASSERT_CUDA(cuMemcpyDtoH(&seen, word, 4));  // in order of the legacy stream
  EXPECT_EQ(seen, 1U);
  opener.join();

  Gate second;
  destroy_busy_stream(second, 2);
  opener = std::thread([&] { second.Open(); });
  ASSERT_CUDA(cuMemFree(word));
  opener.join();
  EXPECT_CUDA(cuCtxSynchronize());
}

TEST_F(StreamTest, AWordThatIsFreedEndsTheWaitForIt) {
  CUstream waiting = Create();
  CUstream other = Create();
  CUdeviceptr word = 0;
  ASSERT_CUDA(cuMemAllocAsync(&word, 4, other));
  ASSERT_CUDA(cuMemsetD32Async(word, 0, 1, other));
  ASSERT_CUDA(cuStreamSynchronize(other));
  ASSERT_CUDA(cuStreamWaitValue32(waiting, word, 1, CU_STREAM_WAIT_VALUE_EQ));
  ASSERT_CUDA(cuMemFreeAsync(word, other));
  EXPECT_EQ(cuStreamSynchronize(waiting), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(StreamTest, AnExceptionOfAHostFunctionIsAnError) {
  CUstream stream = Create();
  ASSERT_CUDA(cuLaunchHostFunc(
      stream, [](void*) { throw std::bad_alloc(); }, nullptr));
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(StreamTest, ManyThreadsManyStreams) {
  constexpr int kThreads = 8;
  static constexpr int kRounds = 200;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this] {
      ASSERT_CUDA(cuCtxSetCurrent(context_));
      CUstream stream = Create(CU_STREAM_DEFAULT);
      CUdeviceptr address = 0;
      ASSERT_CUDA(cuMemAlloc(&address, 4));
      std::atomic<int> counter{0};
      for (int i = 0; i < kRounds; ++i) {
        Count(stream, counter);
        ASSERT_CUDA(cuMemsetD32Async(address, static_cast<unsigned>(i), 1, stream));
        if (i % 50 == 0) {
          ASSERT_CUDA(cuMemsetD32(address, 0, 1));  // the legacy stream
        }
      }
      ASSERT_CUDA(cuStreamSynchronize(stream));
      unsigned value = 0;
      ASSERT_CUDA(cuMemcpyDtoH(&value, address, 4));
      EXPECT_EQ(value, static_cast<unsigned>(kRounds - 1));
      EXPECT_EQ(counter, kRounds);
      ASSERT_CUDA(cuStreamDestroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace torpor::emulator
