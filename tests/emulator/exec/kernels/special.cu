// The instructions of special functions, each as the PTX manual spells it.

namespace {

#define TORPOR_UNARY(name, opcode)                          \
  __device__ float name(float x) {                          \
    float y;                                                \
    asm volatile(opcode ".f32 %0, %1;" : "=f"(y) : "f"(x)); \
    return y;                                               \
  }
TORPOR_UNARY(Exp2, "ex2.approx")
TORPOR_UNARY(Exp2Flushed, "ex2.approx.ftz")
TORPOR_UNARY(Log2, "lg2.approx")
TORPOR_UNARY(Log2Flushed, "lg2.approx.ftz")
TORPOR_UNARY(Sine, "sin.approx")
TORPOR_UNARY(Cosine, "cos.approx")
TORPOR_UNARY(HyperbolicTangent, "tanh.approx")
TORPOR_UNARY(Root, "sqrt.rn")
TORPOR_UNARY(Reciprocal, "rcp.rn")
TORPOR_UNARY(ReciprocalRoot, "rsqrt.approx")
#undef TORPOR_UNARY

}  // namespace

extern "C" __global__ void special(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = in[i];
  out[i] = Exp2(x);
  out[n + i] = Exp2Flushed(x);
  out[2 * n + i] = Log2(x);
  out[3 * n + i] = Log2Flushed(x);
  out[4 * n + i] = Sine(x);
  out[5 * n + i] = Cosine(x);
  out[6 * n + i] = HyperbolicTangent(x);
  out[7 * n + i] = Root(x);
  out[8 * n + i] = Reciprocal(x);
  out[9 * n + i] = ReciprocalRoot(x);
}
