/* SPDX-License-Identifier: Apache-2.0
 * Requests of a host, one packet each, answered in order: one file, for all of it shares the answer being written. Layouts are those of the host's protocol "0.8.0"; numbers are
 * little-endian on both sides. A function's number is its place in a table; tensors are addresses of this device. */
#include <crt_config.h>
#include <string.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/aot_executor.h>
#include <tvm/runtime/crt/microtvm_rpc_server.h>
#include <tvm/runtime/crt/page_allocator.h>
#include <tvm/runtime/crt/platform.h>

/* clang-format off */
enum { /* requests and answers */
  kInitServer = 2, kCallFunction, kReturn, kException, kCopyFromRemote, kCopyToRemote, kCopyAck, kGetGlobalFunction,
  kFreeHandle, kSetDevice, kGetDeviceAttribute, kAllocate, kFreeData, kStreamSync, kCopyAmongRemote,
  kAllocateWithScope, kCreateStream, kFreeStream, kSetStream
};
enum { /* kinds of values */
  kInt = 0, kUInt = 1, kFloat = 2, kHandle = 3, kNull = 4, kDataType = 5, kDevice = 6, kTensor = 7, kArray = 8,
  kModule = 9, kFunction = 10, kStr = 11, kBytes = 12, kNDArray = 13
};
enum { /* numbers of objects */
  kSystemLib = 0x100, kExecutors = 0x200, kExecutorFunctions = 0x1000, kFunctionsPerExecutor = 16, kTimer = 0x8000,
  kPackedFunctions = 0x10000
};
enum { kCpu = 1, kMaxArguments = 16, kRequestHead = 12 };
/* clang-format on */

typedef struct {
  const uint8_t *at;
  size_t left;
  int bad;
} Reader;

typedef struct {
  uint64_t address, byte_offset, bytes;
  const uint8_t *shape; /* in the packet, 8 bytes each */
  int32_t rank;
  uint8_t type[4];
} Tensor;

typedef struct {
  int32_t kind;
  int64_t integer; /* also of handles; a device's kind */
  const char *text;
  size_t text_bytes;
  Tensor tensor;
} Value;

static struct {
  microtvm_rpc_channel_write_t write;
  void *context;
  MicroTVMUnframer unframer;
  PageMemoryManager memory;
  uint8_t our_nonce, session[2];
  int open, ended;
  /* the last evaluator that was made */
  int32_t timed_model;
  int64_t number, repeat;
  size_t reply_bytes;
  int reply_overflow;
  const char *why; /* of the request that failed */
} server;

static uint8_t packet_buffer[TVM_CRT_MAX_PACKET_SIZE_BYTES];
static uint8_t reply_buffer[TVM_CRT_MAX_REPLY_SIZE_BYTES];
static union {
  uint8_t bytes[TVM_CRT_MEMORY_BYTES];
  double aligned;
  int64_t aligned_too;
} memory_pool;

/* ---- reading */
static void take(Reader *r, void *out, size_t bytes) {
  if (bytes > r->left) {
    r->bad = 1;
    memset(out, 0, bytes);
    return;
  }
  memcpy(out, r->at, bytes);
  r->at += bytes;
  r->left -= bytes;
}
static uint64_t take_u64(Reader *r) {
  uint64_t v;
  take(r, &v, sizeof v);
  return v;
}
static int32_t take_i32(Reader *r) {
  int32_t v;
  take(r, &v, sizeof v);
  return v;
}

static Tensor take_tensor(Reader *r) {
  Tensor t;
  uint64_t elements = 1;
  t.address = take_u64(r);
  (void)take_u64(r); /* its device */
  t.rank = take_i32(r);
  take(r, t.type, sizeof t.type);
  t.shape = r->at;
  if (t.rank < 0 || t.rank > TVM_CRT_MAX_NDIM) r->bad = 1;
  for (int32_t i = 0; i < t.rank && !r->bad; ++i) {
    const uint64_t extent = take_u64(r);
    if (extent != 0 && elements > UINT32_MAX / extent) r->bad = 1;
    else elements *= extent;
  }
  t.byte_offset = take_u64(r);
  t.bytes = (elements * t.type[1] * ((unsigned)t.type[2] | (unsigned)t.type[3] << 8) + 7) / 8;
  return t;
}

static void take_value(Reader *r, int32_t kind, Value *out) {
  memset(out, 0, sizeof *out);
  out->kind = kind;
  switch (kind) {
    case kNull:
      return;
    case kInt: case kUInt: case kFloat: case kHandle: case kModule: case kFunction: case kDataType: case kDevice:
      out->integer = (int64_t)take_u64(r);
      if (kind == kUInt) out->kind = kInt;
      return;
    case kTensor:
      out->tensor = take_tensor(r);
      return;
    case kStr: case kBytes: {
      const uint64_t bytes = take_u64(r);
      out->text = (const char *)r->at;
      out->text_bytes = (size_t)bytes;
      if (bytes > r->left) r->bad = 1;
      else r->at += bytes, r->left -= (size_t)bytes;
      return;
    }
    default:
      r->bad = 1;
  }
}

static int32_t take_values(Reader *r, Value *values) {
  int32_t kinds[kMaxArguments];
  const int32_t count = take_i32(r);
  if (count < 0 || count > kMaxArguments) r->bad = 1;
  for (int32_t i = 0; i < count && !r->bad; ++i) kinds[i] = take_i32(r);
  for (int32_t i = 0; i < count && !r->bad; ++i) take_value(r, kinds[i], &values[i]);
  return r->bad ? 0 : count;
}

/* ---- answering */
static void put(const void *data, size_t bytes) {
  if (bytes > sizeof reply_buffer - server.reply_bytes) {
    server.reply_overflow = 1;
    return;
  }
  memcpy(reply_buffer + server.reply_bytes, data, bytes);
  server.reply_bytes += bytes;
}
static void put_i32(int32_t v) { put(&v, sizeof v); }
static void put_u64(uint64_t v) { put(&v, sizeof v); }
static void put_text(const char *text) {
  put_u64(strlen(text));
  put(text, strlen(text));
}
static void begin_reply(int32_t code) {
  server.reply_bytes = 0;
  server.reply_overflow = 0;
  put_u64(0);
  put_i32(code);
}

static void send(uint8_t kind, const void *first, size_t first_bytes, const void *second, size_t second_bytes) {
  MicroTVMFramer framer;
  const uint8_t head[MICROTVM_SESSION_HEADER_BYTES] = {server.session[0], server.session[1], kind};
  framer.write = server.write;
  framer.context = server.context;
  /* A line that is broken is noticed by whoever reads it. */
  (void)MicroTVMFramerStart(&framer, (uint32_t)(sizeof head + first_bytes + second_bytes));
  (void)MicroTVMFramerWrite(&framer, head, sizeof head);
  (void)MicroTVMFramerWrite(&framer, first, first_bytes);
  (void)MicroTVMFramerWrite(&framer, second, second_bytes);
  (void)MicroTVMFramerFinish(&framer);
}
static void send_reply(const void *data, size_t bytes) {
  const uint64_t length = server.reply_bytes - sizeof(uint64_t) + bytes;
  memcpy(reply_buffer, &length, sizeof length);
  send(kMicroTVMNormal, reply_buffer, server.reply_bytes, data, bytes);
}
static void send_error(const char *why) {
  begin_reply(kException);
  put_i32(1), put_i32(kStr);
  put_text(why);
  send_reply(NULL, 0);
}

/* Results of calls have their kind in front; answers of requests have not. */
static void reply_nothing(void) {
  begin_reply(kReturn);
  put_i32(1), put_i32(kNull);
}
static void reply_number(int64_t v) {
  begin_reply(kReturn);
  put_i32(1), put_i32(kInt);
  put_u64((uint64_t)v);
}
static void reply_handle(uint64_t v) {
  begin_reply(kReturn);
  put_i32(1), put_i32(kHandle);
  put_u64(v);
}
static void result(int32_t kind, int32_t coded, uint64_t value) {
  begin_reply(kReturn);
  put_i32(2), put_i32(kInt), put_i32(coded);
  put_u64((uint64_t)kind);
  if (coded != kNull) put_u64(value);
}
static int nothing(void) {
  result(kNull, kNull, 0);
  return 1;
}
static int integer(int64_t v) {
  result(kInt, kInt, (uint64_t)v);
  return 1;
}
static int object(int32_t kind, uint64_t number) {
  result(kind, kHandle, number);
  return 1;
}
static int text(const char *value) {
  begin_reply(kReturn);
  put_i32(2), put_i32(kInt), put_i32(kStr);
  put_u64(kStr);
  put_text(value);
  return 1;
}
static int failed(const char *why) {
  server.why = why;
  return 0;
}

/* ---- functions of an executor. Each writes an answer, or says why not. */
static void put_tensor(const TVMAotTensor *t) {
  put_u64((uint64_t)(uintptr_t)t->data);
  put_i32(kCpu), put_i32(0);
  put_i32(t->ndim);
  put(&t->type_code, 1), put(&t->type_bits, 1), put(&t->type_lanes, 2);
  for (int32_t i = 0; i < t->ndim; ++i) put_u64((uint64_t)t->shape[i]);
  put_u64(0);
}
static int ndarray(const TVMAotTensor *t) {
  begin_reply(kReturn);
  put_i32(3), put_i32(kInt), put_i32(kTensor), put_i32(kHandle);
  put_u64(kNDArray);
  put_tensor(t);
  put_u64((uint64_t)(uintptr_t)t->data); /* freeing it frees nothing */
  return 1;
}

static const TVMAotTensor *chosen(const TVMAotTensor *tensors, int32_t count, const Value *args, int32_t given) {
  int64_t i = -1;
  if (given > 0 && args[0].kind == kInt) i = args[0].integer;
  if (given > 0 && args[0].kind == kStr) i = TVMAotTensorIndex(tensors, count, args[0].text, args[0].text_bytes);
  return i >= 0 && i < count ? &tensors[i] : NULL;
}

typedef int (*ModelFunction)(const TVMAotModel *model, const Value *args, int32_t count);

static int model_set_input(const TVMAotModel *m, const Value *args, int32_t count) {
  const TVMAotTensor *to = chosen(m->inputs, m->num_inputs, args, count);
  if (!to) return failed("the model has no such input");
  if (count < 2 || args[1].kind != kTensor) return failed("set_input wants a tensor of the device");
  if (args[1].tensor.bytes != to->num_bytes) return failed("the tensor is not of the input's size");
  memmove(to->data, (const void *)(uintptr_t)(args[1].tensor.address + args[1].tensor.byte_offset), to->num_bytes);
  return nothing();
}
static int model_get_input(const TVMAotModel *m, const Value *args, int32_t count) {
  const TVMAotTensor *t = chosen(m->inputs, m->num_inputs, args, count);
  return t ? ndarray(t) : failed("the model has no such input");
}
static int model_get_output(const TVMAotModel *m, const Value *args, int32_t count) {
  const TVMAotTensor *t = chosen(m->outputs, m->num_outputs, args, count);
  return t ? ndarray(t) : failed("the model has no such output");
}
static int model_run(const TVMAotModel *m, const Value *args, int32_t count) {
  (void)args, (void)count;
  return m->run() == 0 ? nothing() : failed("the model reported an error");
}
static int model_num_inputs(const TVMAotModel *m, const Value *args, int32_t count) {
  (void)args, (void)count;
  return integer(m->num_inputs);
}
static int model_num_outputs(const TVMAotModel *m, const Value *args, int32_t count) {
  (void)args, (void)count;
  return integer(m->num_outputs);
}
static int model_input_index(const TVMAotModel *m, const Value *args, int32_t count) {
  if (count < 1 || args[0].kind != kStr) return failed("get_input_index wants a name");
  return integer(TVMAotTensorIndex(m->inputs, m->num_inputs, args[0].text, args[0].text_bytes));
}
static int model_input_name(const TVMAotModel *m, const Value *args, int32_t count) {
  const TVMAotTensor *t = chosen(m->inputs, m->num_inputs, args, count);
  return t ? text(t->name) : failed("the model has no such input");
}
static int model_output_name(const TVMAotModel *m, const Value *args, int32_t count) {
  const TVMAotTensor *t = chosen(m->outputs, m->num_outputs, args, count);
  return t ? text(t->name) : failed("the model has no such output");
}

/* "int8", "float32", "bool" as the host spells dtypes. */
static void put_dtype(const TVMAotTensor *t) {
  char name[16] = "int";
  size_t n;
  if (t->type_code == 1) strcpy(name, t->type_bits == 1 ? "bool" : "uint");
  if (t->type_code == 2) strcpy(name, "float");
  if (t->type_code == 4) strcpy(name, "bfloat");
  n = strlen(name);
  if (t->type_bits != 1) {
    if (t->type_bits >= 10) name[n++] = (char)('0' + t->type_bits / 10);
    name[n++] = (char)('0' + t->type_bits % 10);
  }
  name[n] = '\0';
  put_text(name);
}
/* A list of (name, shape, dtype). */
static int model_input_info(const TVMAotModel *m, const Value *args, int32_t count) {
  (void)args, (void)count;
  begin_reply(kReturn);
  put_i32(2), put_i32(kInt), put_i32(kArray);
  put_u64(kArray);
  put_u64((uint64_t)m->num_inputs);
  for (int32_t i = 0; i < m->num_inputs; ++i) {
    const TVMAotTensor *t = &m->inputs[i];
    put_i32(kArray), put_u64(3);
    put_i32(kStr), put_text(t->name);
    put_i32(kArray), put_u64((uint64_t)t->ndim);
    for (int32_t d = 0; d < t->ndim; ++d) put_i32(kInt), put_u64((uint64_t)t->shape[d]);
    put_i32(kStr), put_dtype(t);
  }
  return 1;
}

static const struct {
  const char *name;
  ModelFunction call;
} model_functions[] = {{"set_input", model_set_input},
                       {"get_input", model_get_input},
                       {"get_output", model_get_output},
                       {"run", model_run},
                       {"get_num_inputs", model_num_inputs},
                       {"get_num_outputs", model_num_outputs},
                       {"get_input_index", model_input_index},
                       {"get_input_name", model_input_name},
                       {"get_output_name", model_output_name},
                       {"get_input_info", model_input_info}};
enum { kRunFunction = 3, kModelFunctionCount = sizeof model_functions / sizeof model_functions[0] };

static int is_text(const Value *v, const char *what) {
  return v->kind == kStr && v->text_bytes == strlen(what) && memcmp(v->text, what, v->text_bytes) == 0;
}
/* The model of an executor's number; -1: it is none. */
static int32_t model_of(const Value *v) {
  const int64_t i = v->integer - kExecutors;
  return (v->kind == kModule || v->kind == kHandle) && i >= 0 && i < kTvmAotModelCount ? (int32_t)i : -1;
}

/* ---- global functions */
static int packet_size(const Value *args, int32_t count) {
  (void)args, (void)count;
  return integer(TVM_CRT_MAX_PACKET_SIZE_BYTES);
}
static int system_lib(const Value *args, int32_t count) {
  (void)args, (void)count;
  return object(kModule, kSystemLib);
}
/* (library, device [, model's name]) */
static int create_executor(const Value *args, int32_t count) {
  if (count < 3) return kTvmAotModelCount > 0 ? object(kModule, kExecutors) : failed("the program has no model");
  for (int32_t i = 0; i < kTvmAotModelCount; ++i)
    if (is_text(&args[2], kTvmAotModels[i].name)) return object(kModule, (uint64_t)(kExecutors + i));
  return failed("the program has no model of this name");
}
/* ---- packed functions of the program */
static const char *packed_name(const TVMModule *module, uint32_t i) {
  const char *at = module->registry->names + 2;
  for (; i > 0; --i) at += strlen(at) + 1;
  return at;
}
static uint32_t packed_count(const TVMModule *module) {
  const unsigned char *head = module ? (const unsigned char *)module->registry->names : NULL;
  return head ? (uint32_t)head[0] | (uint32_t)head[1] << 8 : 0;
}
void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t num_bytes, int code, int bits) {
  void *out = NULL;
  (void)device_type, (void)device_id, (void)code, (void)bits;
  if (num_bytes <= sizeof memory_pool && PageMemoryManagerAllocate(&server.memory, (size_t)num_bytes, &out) == 0)
    return out;
  server.why = "the device has no memory for a function's workspace: TVM_CRT_MEMORY_BYTES of crt_config.h is what there is";
  return NULL;
}
int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr) {
  (void)device_type, (void)device_id;
  return PageMemoryManagerFree(&server.memory, ptr) == kTvmErrorNoError ? 0 : -1;
}
void TVMAPISetLastError(const char *message) { server.why = message; }

static int is_reachable(uint64_t address, uint64_t bytes);
static int call_packed(const TVMModule *module, uint32_t i, const Value *values, int32_t count) {
  static DLTensor tensors[kMaxArguments];
  static int64_t shapes[kMaxArguments][TVM_CRT_MAX_NDIM];
  static TVMValue args[kMaxArguments];
  int32_t codes[kMaxArguments], result_code = kTVMNullptr;
  TVMValue out;
  out.v_int64 = 0;
  for (int32_t k = 0; k < count; ++k) {
    const Tensor *t = &values[k].tensor;
    if (values[k].kind == kInt || values[k].kind == kFloat) {
      memcpy(&args[k], &values[k].integer, sizeof args[k]); /* the bits of either */
      codes[k] = values[k].kind == kInt ? kDLInt : kDLFloat;
      continue;
    }
    if (values[k].kind != kTensor) return failed("functions of the device take tensors and numbers");
    if (!is_reachable(t->address + t->byte_offset, t->bytes)) return failed("a tensor that is not the device's");
    memset(&tensors[k], 0, sizeof tensors[k]);
    memcpy(shapes[k], t->shape, (size_t)t->rank * sizeof shapes[k][0]);
    tensors[k].data = (void *)(uintptr_t)t->address;
    tensors[k].device.device_type = kDLCPU;
    tensors[k].ndim = t->rank;
    tensors[k].dtype.code = t->type[0], tensors[k].dtype.bits = t->type[1];
    tensors[k].dtype.lanes = (uint16_t)(t->type[2] | t->type[3] << 8);
    tensors[k].shape = shapes[k];
    tensors[k].byte_offset = t->byte_offset;
    args[k].v_handle = &tensors[k];
    codes[k] = kTVMDLTensorHandle;
  }
  server.why = "the function reported an error";
  return module->registry->funcs[i](args, codes, count, &out, &result_code, NULL) == 0 ? nothing() : 0;
}

/* (module, name, with imports) */
static int module_function(const Value *args, int32_t count) {
  const TVMModule *module = TVMProjectSystemLib();
  const int is_system_lib = count > 1 && args[0].kind != kStr && args[0].integer == kSystemLib;
  for (uint32_t i = 0; is_system_lib && i < packed_count(module); ++i)
    if (is_text(&args[1], packed_name(module, i))) return object(kFunction, (uint64_t)kPackedFunctions + i);
  const int32_t model = count > 1 ? model_of(&args[0]) : -1;
  for (int32_t i = 0; model >= 0 && i < kModelFunctionCount; ++i)
    if (is_text(&args[1], model_functions[i].name))
      return object(kFunction, (uint64_t)(kExecutorFunctions + model * kFunctionsPerExecutor + i));
  return nothing();
}
/* (module, "run", device type, device, number, repeat, ...): a function whose result is `repeat` doubles, the seconds of
 * one run. */
static int time_evaluator(const Value *args, int32_t count) {
  const int32_t model = count > 5 ? model_of(&args[0]) : -1;
  if (model < 0 || !is_text(&args[1], "run")) return failed("the device measures the function run of an executor only");
  if (args[4].integer < 1 || args[5].integer < 1 || args[5].integer > 64)
    return failed("number starts at 1, and repeat is from 1 to 64 on a device");
  server.timed_model = model;
  server.number = args[4].integer;
  server.repeat = args[5].integer;
  return object(kFunction, kTimer);
}
static int measure(void) {
  begin_reply(kReturn);
  put_i32(2), put_i32(kInt), put_i32(kBytes);
  put_u64(kBytes);
  put_u64((uint64_t)server.repeat * sizeof(double));
  for (int64_t r = 0; r < server.repeat; ++r) {
    double seconds = 0;
    if (TVMPlatformTimerStart() != kTvmErrorNoError) return failed("the device's timer did not start");
    for (int64_t i = 0; i < server.number; ++i)
      if (kTvmAotModels[server.timed_model].run() != 0) return failed("the model reported an error");
    if (TVMPlatformTimerStop(&seconds) != kTvmErrorNoError) return failed("the device's timer did not stop");
    seconds /= (double)server.number;
    put(&seconds, sizeof seconds);
  }
  return 1;
}

static const struct {
  const char *name;
  int (*call)(const Value *args, int32_t count);
} global_functions[] = {{"tvm.rpc.server.GetCRTMaxPacketSize", packet_size},
                        {"runtime.SystemLib", system_lib},
                        {"tvm.aot_executor.create", create_executor},
                        {"tvm.rpc.server.ModuleGetFunction", module_function},
                        {"runtime.RPCTimeEvaluator", time_evaluator}};
enum { kGlobalFunctionCount = sizeof global_functions / sizeof global_functions[0] };

static int call_function(Reader *r, Value *values) {
  const uint64_t number = take_u64(r);
  const int32_t count = take_values(r, values);
  if (r->bad) return failed("a request that is cut off, or has more than a device takes");
  if (number >= 1 && number <= kGlobalFunctionCount) return global_functions[number - 1].call(values, count);
  if (number == kTimer && server.repeat > 0) return measure();
  if (number >= kPackedFunctions && number - kPackedFunctions < packed_count(TVMProjectSystemLib()))
    return call_packed(TVMProjectSystemLib(), (uint32_t)(number - kPackedFunctions), values, count);
  if (number >= kExecutorFunctions) {
    const uint64_t model = (number - kExecutorFunctions) / kFunctionsPerExecutor;
    const uint64_t function = (number - kExecutorFunctions) % kFunctionsPerExecutor;
    if (model < (uint64_t)kTvmAotModelCount && function < kModelFunctionCount)
      return model_functions[function].call(&kTvmAotModels[model], values, count);
  }
  return failed("a function that the device does not have");
}

/* ---- requests */
static int allocate(uint64_t bytes) {
  void *out = NULL;
  if (bytes > sizeof memory_pool || PageMemoryManagerAllocate(&server.memory, (size_t)bytes, &out) != kTvmErrorNoError)
    return failed("the device has no memory for such a tensor: TVM_CRT_MEMORY_BYTES of crt_config.h is what there is");
  reply_handle((uint64_t)(uintptr_t)out);
  return 1;
}

/* Memory that the host may read and write: its own tensors, and the models'. */
static int is_reachable(uint64_t address, uint64_t bytes) {
  uint64_t begin = (uint64_t)(uintptr_t)memory_pool.bytes, size = sizeof memory_pool;
  if (address >= begin && address - begin <= size && bytes <= size - (address - begin)) return 1;
  for (int32_t m = 0; m < kTvmAotModelCount; ++m)
    for (int32_t i = 0; i < kTvmAotModels[m].num_inputs + kTvmAotModels[m].num_outputs; ++i) {
      const int32_t inputs = kTvmAotModels[m].num_inputs;
      const TVMAotTensor *t = i < inputs ? &kTvmAotModels[m].inputs[i] : &kTvmAotModels[m].outputs[i - inputs];
      begin = (uint64_t)(uintptr_t)t->data, size = t->num_bytes;
      if (address >= begin && address - begin <= size && bytes <= size - (address - begin)) return 1;
    }
  return 0;
}

static int copy(Reader *r, int inwards) {
  const Tensor t = take_tensor(r);
  const uint64_t bytes = take_u64(r), address = t.address + t.byte_offset;
  if (r->bad || (inwards && r->left != bytes)) return failed("a copy that is cut off");
  if (!is_reachable(address, bytes)) return failed("a copy that leaves the tensors of the device");
  if (inwards) {
    memcpy((void *)(uintptr_t)address, r->at, (size_t)bytes);
    reply_nothing();
    return 1;
  }
  begin_reply(kCopyAck);
  send_reply((const void *)(uintptr_t)address, (size_t)bytes);
  return 2;
}
static int copy_among(const Value *values, int32_t count) {
  if (count < 2 || values[0].kind != kTensor || values[1].kind != kTensor) return failed("a copy without tensors");
  const uint64_t from = values[0].tensor.address + values[0].tensor.byte_offset, bytes = values[0].tensor.bytes;
  const uint64_t to = values[1].tensor.address + values[1].tensor.byte_offset;
  if (bytes != values[1].tensor.bytes || !is_reachable(from, bytes) || !is_reachable(to, bytes))
    return failed("a copy that leaves the tensors of the device");
  memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, (size_t)bytes);
  reply_nothing();
  return 1;
}

static int find_function(const Value *values, int32_t count) {
  uint64_t number = 0;
  for (int32_t i = 0; count > 0 && i < kGlobalFunctionCount; ++i)
    if (is_text(&values[0], global_functions[i].name)) number = (uint64_t)i + 1;
  reply_handle(number);
  return 1;
}

/* 0: failed, server.why says why; 1: the answer is in the buffer; 2: it is sent. */
static int answer(int32_t code, Reader *r) {
  Value values[kMaxArguments];
  int32_t count = 0;
  server.why = "a request that the device does not know";
  if (code == kInitServer) {
    reply_nothing();
    return 1;
  }
  if (code == kCallFunction) return call_function(r, values);
  if (code == kCopyToRemote || code == kCopyFromRemote) return copy(r, code == kCopyToRemote);
  count = take_values(r, values);
  if (r->bad) return failed("a request that is cut off, or has more than a device takes");
  switch (code) {
    case kGetGlobalFunction:
      return find_function(values, count);
    case kGetDeviceAttribute: /* 0: whether it is there */
      if (count > 1 && values[1].integer == 0) reply_number(values[0].integer == kCpu);
      else reply_nothing();
      return 1;
    case kAllocate:
      return count > 1 ? allocate((uint64_t)values[1].integer) : failed("an allocation without a size");
    case kAllocateWithScope:
      return count > 0 ? allocate(values[0].tensor.bytes) : failed("an allocation without a size");
    case kFreeData:
      if (count > 1) (void)PageMemoryManagerFree(&server.memory, (void *)(uintptr_t)values[1].integer);
      reply_nothing();
      return 1;
    case kCopyAmongRemote:
      return copy_among(values, count);
    case kFreeHandle: case kSetDevice: case kStreamSync: case kFreeStream: case kSetStream:
      reply_nothing();
      return 1;
    case kCreateStream:
      reply_handle(0);
      return 1;
    default:
      return 0;
  }
}

static void serve(const uint8_t *packet, size_t bytes) {
  Reader r = {packet, bytes, 0};
  const uint64_t length = take_u64(&r);
  const int32_t code = take_i32(&r);
  if (bytes < kRequestHead || length != bytes - sizeof(uint64_t)) {
    send_error("a request of another length than it says");
    return;
  }
  if (code == 1) { /* shutdown */
    server.open = 0;
    server.ended = 1;
    return;
  }
  const int done = answer(code, &r);
  if (done == 0) send_error(server.why);
  if (done == 1 && server.reply_overflow) send_error("the answer is longer than TVM_CRT_MAX_REPLY_SIZE_BYTES");
  else if (done == 1) send_reply(NULL, 0);
}

static void begin_session(uint8_t nonce) {
  (void)PageMemoryManagerCreate(&server.memory, memory_pool.bytes, sizeof memory_pool, TVM_CRT_PAGE_BITS);
  server.our_nonce = (uint8_t)(server.our_nonce + 1);
  if (server.our_nonce == 0) server.our_nonce = 1;
  server.session[0] = nonce;
  server.session[1] = server.our_nonce;
  server.repeat = 0;
  server.open = 1;
  server.ended = 0;
  send(kMicroTVMStartSessionReply, NULL, 0, NULL, 0);
}

static void take_packet(void) {
  const uint8_t *p = server.unframer.buffer;
  const uint32_t bytes = server.unframer.length;
  if (bytes < MICROTVM_SESSION_HEADER_BYTES) return;
  if (p[2] == kMicroTVMStartSessionInit) {
    begin_session(p[0]);
  } else if (server.open && p[0] == server.session[0] && p[1] == server.session[1]) {
    if (p[2] == kMicroTVMTerminateSession) {
      server.open = 0;
      server.ended = 1;
    }
    if (p[2] == kMicroTVMNormal) serve(p + MICROTVM_SESSION_HEADER_BYTES, bytes - MICROTVM_SESSION_HEADER_BYTES);
  }
}

microtvm_rpc_server_t MicroTVMRpcServerInit(microtvm_rpc_channel_write_t write, void *context) {
  TVMAotPlaceTensors();
  server.write = write;
  server.context = context;
  MicroTVMUnframerInit(&server.unframer, packet_buffer, sizeof packet_buffer);
  (void)TVMPlatformGenerateRandom(&server.our_nonce, 1);
  return &server;
}

tvm_crt_error_t MicroTVMRpcServerLoop(microtvm_rpc_server_t which, const uint8_t **data, size_t *num_bytes) {
  tvm_crt_error_t first = kTvmErrorNoError;
  (void)which;
  while (*num_bytes > 0) {
    tvm_crt_error_t error;
    const uint8_t byte = **data;
    ++*data;
    --*num_bytes;
    if (MicroTVMUnframerByte(&server.unframer, byte, &error)) take_packet();
    if (first == kTvmErrorNoError) first = error;
  }
  return first;
}

int MicroTVMRpcServerHasEnded(microtvm_rpc_server_t which) {
  (void)which;
  return server.ended;
}
