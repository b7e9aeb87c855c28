/* SPDX-License-Identifier: Apache-2.0 */
#include <crt_config.h>
#include <string.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/module.h>
#include <tvm/runtime/crt/platform.h>

#include "graph_json.h"

/* Of a tensor's memory. Kernels of C files need 8; those in objects read whole cache lines. */
#ifndef TVM_CRT_STORAGE_ALIGNMENT
#define TVM_CRT_STORAGE_ALIGNMENT 64
#endif
enum { kMost = 1 << 20, kMostName = 256 };

typedef struct {
  char* name;
  TVMBackendPackedCFunc call; /* null: an input or a parameter */
  uint32_t first_input, num_inputs, num_outputs;
} Node;
typedef struct {
  uint32_t node, output;
} Reference;

struct TVMGraphExecutor {
  void* blocks; /* all memory, as a list */
  const TVMModule* module;
  Node* nodes;
  Reference *references, *heads; /* what nodes read, node by node; the outputs */
  int64_t *arguments, *rows;     /* nodes that are inputs or parameters; the first entry of each node */
  int64_t* storage_ids;          /* of entries */
  DLTensor* entries;
  uint32_t num_nodes, num_references, num_heads, num_arguments, num_rows, num_entries;
  struct { /* what the lists hold */
    uint32_t nodes, references, heads, arguments, rows, entries;
  } room;
  TVMValue* values; /* of one call */
  int32_t* codes;
};

static const DLDevice kProcessor = {kDLCPU, 0};

static int failed(const char* why) {
  TVMAPISetLastError(why);
  return -1;
}

/* Zeroed; null: there is none. A block begins with the address of the one before. */
static void* take_memory(TVMGraphExecutor* g, size_t count, size_t size) {
  enum { kHead = 16 };
  void* block = NULL;
  if (size != 0 && count > (SIZE_MAX - kHead) / size) return NULL;
  if (TVMPlatformMemoryAllocate(kHead + count * size, kProcessor, &block) != kTvmErrorNoError) return NULL;
  memset(block, 0, kHead + count * size);
  memcpy(block, &g->blocks, sizeof g->blocks);
  g->blocks = block;
  return (uint8_t*)block + kHead;
}

/* ---- reading the graph. 0; or -1, and the last error says why. The text is read twice: to count, and, with memory for
 * what was counted, to keep. */
static int damaged(void) { return failed("the graph's JSON is damaged"); }

static int read_references(JsonReader* r, Reference* out, uint32_t capacity, uint32_t* count) {
  int first = 1;
  if (!JsonReader_Take(r, '[')) return -1;
  while (JsonReader_Next(r, ']', &first)) {
    int64_t part[3] = {-1, -1, 0};
    int n = 0, first_part = 1;
    if (!JsonReader_Take(r, '[')) return -1;
    while (JsonReader_Next(r, ']', &first_part)) {
      const int64_t v = JsonReader_Integer(r);
      if (n < 3) part[n++] = v;
    }
    if (part[0] < 0 || part[0] >= kMost || part[1] < 0 || part[1] >= kMost || *count >= kMost) return -1;
    if (out) {
      if (*count >= capacity) return -1;
      out[*count].node = (uint32_t)part[0];
      out[*count].output = (uint32_t)part[1];
    }
    ++*count;
  }
  return r->bad ? -1 : 0;
}

/* A node's attributes: which function, how many results. */
static int read_call(const TVMGraphExecutor* g, JsonReader* r, Node* node) {
  char key[kMostName], value[kMostName];
  int first = 1;
  if (!JsonReader_Take(r, '{')) return -1;
  while (JsonReader_Next(r, '}', &first)) {
    if (JsonReader_Text(r, key, sizeof key) >= sizeof key || !JsonReader_Take(r, ':')) return -1;
    if (JsonReader_Text(r, value, sizeof value) >= sizeof value) return -1;
    if (strcmp(key, "func_name") == 0) {
      node->call = TVMFuncRegistry_Lookup(g->module->registry, value);
      if (!node->call) return failed("the graph calls a function that the module does not have"), -2;
    } else if (strcmp(key, "num_outputs") == 0) {
      JsonReader number = {value, 0};
      const int64_t n = JsonReader_Integer(&number);
      if (number.bad || n < 0 || n >= kMost) return -1;
      node->num_outputs = (uint32_t)n;
    }
  }
  return r->bad ? -1 : 0;
}

static int read_node(TVMGraphExecutor* g, JsonReader* r, Node* node) {
  char key[16], text[kMostName];
  int first = 1, error;
  node->num_outputs = 1;
  if (!JsonReader_Take(r, '{')) return -1;
  while (JsonReader_Next(r, '}', &first)) {
    (void)JsonReader_Text(r, key, sizeof key);
    if (!JsonReader_Take(r, ':')) return -1;
    if (strcmp(key, "name") == 0) {
      const size_t n = JsonReader_Text(r, text, sizeof text);
      if (n >= sizeof text) return -1;
      if (g->nodes) {
        node->name = (char*)take_memory(g, n + 1, 1);
        if (!node->name) return failed("the platform has no memory for the graph"), -2;
        memcpy(node->name, text, n);
      }
    } else if (strcmp(key, "attrs") == 0 && g->nodes) {
      if ((error = read_call(g, r, node)) != 0) return error;
    } else if (strcmp(key, "inputs") == 0) {
      uint32_t all = g->num_references;
      node->first_input = all;
      if (read_references(r, g->references, g->room.references, &all) != 0) return -1;
      node->num_inputs = all - g->num_references;
      g->num_references = all;
    } else {
      JsonReader_Skip(r);
    }
  }
  return r->bad ? -1 : 0;
}

static int read_nodes(TVMGraphExecutor* g, JsonReader* r) {
  int first = 1, error;
  Node counted;
  g->num_nodes = g->num_references = 0;
  if (!JsonReader_Take(r, '[')) return -1;
  while (JsonReader_Next(r, ']', &first)) {
    memset(&counted, 0, sizeof counted);
    if (g->num_nodes >= (g->nodes ? g->room.nodes : kMost)) return -1;
    if ((error = read_node(g, r, g->nodes ? &g->nodes[g->num_nodes] : &counted)) != 0) return error;
    ++g->num_nodes;
  }
  return r->bad ? -1 : 0;
}

static int read_integers(JsonReader* r, int64_t* out, uint32_t capacity, uint32_t* count) {
  int first = 1;
  *count = 0;
  if (!JsonReader_Take(r, '[')) return -1;
  while (JsonReader_Next(r, ']', &first)) {
    const int64_t v = JsonReader_Integer(r);
    if (*count >= (out ? capacity : kMost)) return -1;
    if (out) out[*count] = v;
    ++*count;
  }
  return r->bad ? -1 : 0;
}

/* "float32", "int8", "bool", ... */
static int read_dtype(JsonReader* r, DLDataType* out) {
  static const struct {
    const char* name;
    uint8_t code;
  } kKinds[] = {{"int", kDLInt}, {"uint", kDLUInt}, {"float", kDLFloat}, {"bfloat", kDLBfloat}};
  char text[24];
  out->lanes = 1;
  if (JsonReader_Text(r, text, sizeof text) >= sizeof text) return -1;
  if (strcmp(text, "bool") == 0) {
    out->code = kDLUInt, out->bits = 1;
    return 0;
  }
  for (size_t i = 0; i < sizeof kKinds / sizeof kKinds[0]; ++i) {
    const size_t n = strlen(kKinds[i].name);
    JsonReader bits = {text + n, 0};
    if (strncmp(text, kKinds[i].name, n) != 0 || text[n] < '0' || text[n] > '9') continue;
    const int64_t v = JsonReader_Integer(&bits);
    if (*bits.at != '\0' || v < 1 || v > 64) return -1;
    out->code = kKinds[i].code, out->bits = (uint8_t)v;
    return 0;
  }
  return -1;
}

static int read_shapes(TVMGraphExecutor* g, JsonReader* r) {
  uint32_t i = 0;
  int first = 1;
  if (!JsonReader_Take(r, '[')) return -1;
  while (JsonReader_Next(r, ']', &first)) {
    const size_t rank = JsonReader_Count(r);
    uint32_t read;
    if (g->entries && i < g->num_entries) {
      if (rank > TVM_CRT_MAX_NDIM) return failed("the graph has a tensor of more than TVM_CRT_MAX_NDIM dimensions"), -2;
      g->entries[i].shape = (int64_t*)take_memory(g, rank, sizeof(int64_t));
      g->entries[i].ndim = (int32_t)rank;
      if (!g->entries[i].shape) return failed("the platform has no memory for the graph"), -2;
      if (read_integers(r, g->entries[i].shape, (uint32_t)rank, &read) != 0) return -1;
    } else {
      JsonReader_Skip(r);
    }
    ++i;
  }
  if (g->entries && i != g->num_entries) return -1;
  return r->bad ? -1 : 0;
}

/* Each attribute is a list: its kind, then the list of values. */
static int read_attributes(TVMGraphExecutor* g, JsonReader* r) {
  char key[24], kind[24];
  int first = 1, error = 0;
  if (!JsonReader_Take(r, '{')) return -1;
  while (error == 0 && JsonReader_Next(r, '}', &first)) {
    uint32_t count = 0;
    (void)JsonReader_Text(r, key, sizeof key);
    if (!JsonReader_Take(r, ':') || !JsonReader_Take(r, '[')) return -1;
    (void)JsonReader_Text(r, kind, sizeof kind);
    if (!JsonReader_Take(r, ',')) return -1;
    if (strcmp(key, "storage_id") == 0) {
      const uint32_t before = g->num_entries;
      error = read_integers(r, g->storage_ids, g->room.entries, &g->num_entries);
      if (g->storage_ids && before != g->num_entries) error = -1; /* the tensors' list has that many */
    } else if (strcmp(key, "shape") == 0) {
      error = read_shapes(g, r);
    } else if (strcmp(key, "dltype") == 0 && g->entries) {
      int first_type = 1;
      if (!JsonReader_Take(r, '[')) return -1;
      while (JsonReader_Next(r, ']', &first_type))
        if (count >= g->num_entries || read_dtype(r, &g->entries[count++].dtype) != 0) return -1;
      if (count != g->num_entries) return -1;
    } else {
      JsonReader_Skip(r);
    }
    if (!JsonReader_Take(r, ']')) return error ? error : -1;
  }
  return error ? error : r->bad ? -1 : 0;
}

static int read_graph(TVMGraphExecutor* g, const char* json) {
  JsonReader r = {json, 0};
  char key[24];
  int first = 1, error = 0;
  if (!JsonReader_Take(&r, '{')) return damaged();
  while (error == 0 && JsonReader_Next(&r, '}', &first)) {
    (void)JsonReader_Text(&r, key, sizeof key);
    if (!JsonReader_Take(&r, ':')) return damaged();
    if (strcmp(key, "nodes") == 0) {
      error = read_nodes(g, &r);
    } else if (strcmp(key, "heads") == 0) {
      g->num_heads = 0;
      error = read_references(&r, g->heads, g->room.heads, &g->num_heads);
    } else if (strcmp(key, "arg_nodes") == 0) {
      error = read_integers(&r, g->arguments, g->room.arguments, &g->num_arguments);
    } else if (strcmp(key, "node_row_ptr") == 0) {
      error = read_integers(&r, g->rows, g->room.rows, &g->num_rows);
    } else if (strcmp(key, "attrs") == 0) {
      error = read_attributes(g, &r);
    } else {
      JsonReader_Skip(&r);
    }
  }
  if (error == -2) return -1; /* said already */
  return error || r.bad ? damaged() : 0;
}

/* ---- checking it, and memory for its tensors */
static DLTensor* entry_of(const TVMGraphExecutor* g, Reference at) { return &g->entries[g->rows[at.node] + at.output]; }
static int is_entry(const TVMGraphExecutor* g, Reference at) {
  return at.node < g->num_nodes && at.output < (uint64_t)(g->rows[at.node + 1] - g->rows[at.node]);
}

static int check_graph(const TVMGraphExecutor* g) {
  if (g->num_nodes == 0 || g->num_rows != g->num_nodes + 1 || g->rows[0] != 0 ||
      g->rows[g->num_nodes] != (int64_t)g->num_entries)
    return damaged();
  for (uint32_t i = 0; i < g->num_nodes; ++i) {
    const Node* n = &g->nodes[i];
    if (!n->name || g->rows[i + 1] < g->rows[i] || g->rows[i + 1] - g->rows[i] != (int64_t)n->num_outputs)
      return damaged();
    for (uint32_t k = 0; k < n->num_inputs; ++k)
      if (g->references[n->first_input + k].node >= i) return damaged();
  }
  for (uint32_t i = 0; i < g->num_references; ++i)
    if (!is_entry(g, g->references[i])) return damaged();
  for (uint32_t i = 0; i < g->num_heads; ++i)
    if (!is_entry(g, g->heads[i])) return damaged();
  for (uint32_t i = 0; i < g->num_arguments; ++i)
    if (g->arguments[i] < 0 || g->arguments[i] >= (int64_t)g->num_nodes || g->nodes[g->arguments[i]].call)
      return damaged();
  return 0;
}

/* SIZE_MAX: more than there can be. A bool takes a byte. */
static size_t bytes_of(const DLTensor* t) {
  uint64_t bits = t->dtype.bits == 1 ? 8 : t->dtype.bits;
  bits *= t->dtype.lanes;
  for (int32_t i = 0; i < t->ndim; ++i) {
    if (t->shape[i] < 0 || (t->shape[i] > 0 && bits > UINT64_MAX / 16 / (uint64_t)t->shape[i])) return SIZE_MAX;
    bits *= (uint64_t)t->shape[i];
  }
  return (bits + 7) / 8 < SIZE_MAX / 2 ? (size_t)((bits + 7) / 8) : SIZE_MAX;
}

/* Weights that are part of the code, by storage; null: none, or not of this one. */
static void* linked_param(const TVMGraphExecutor* g, int64_t storage) {
  const TVMBackendPackedCFunc lookup = TVMFuncRegistry_Lookup(g->module->registry, "_lookup_linked_param");
  TVMValue argument, out;
  int32_t code = kTVMArgInt, out_code = kTVMNullptr;
  if (!lookup) return NULL;
  argument.v_int64 = storage;
  out.v_handle = NULL;
  return lookup(&argument, &code, 1, &out, &out_code, NULL) == 0 && out_code == kTVMOpaqueHandle ? out.v_handle : NULL;
}

/* Entries with one storage share the memory of the largest. */
static int place_tensors(TVMGraphExecutor* g) {
  for (uint32_t i = 0; i < g->num_entries; ++i) {
    size_t most = 0;
    uint8_t* memory;
    if (g->entries[i].data) continue;
    for (uint32_t k = i; k < g->num_entries; ++k) {
      const size_t bytes = bytes_of(&g->entries[k]);
      if (bytes == SIZE_MAX || g->storage_ids[k] < 0 || g->entries[k].dtype.bits == 0) return damaged();
      if (g->storage_ids[k] == g->storage_ids[i] && bytes > most) most = bytes;
    }
    memory = (uint8_t*)linked_param(g, g->storage_ids[i]);
    if (!memory) {
      memory = (uint8_t*)take_memory(g, most + TVM_CRT_STORAGE_ALIGNMENT, 1);
      if (!memory) return failed("the platform has no memory for the graph's tensors");
      memory += (TVM_CRT_STORAGE_ALIGNMENT - (uintptr_t)memory % TVM_CRT_STORAGE_ALIGNMENT) % TVM_CRT_STORAGE_ALIGNMENT;
    }
    for (uint32_t k = i; k < g->num_entries; ++k)
      if (g->storage_ids[k] == g->storage_ids[i]) g->entries[k].data = memory;
  }
  return 0;
}

static int take_lists(TVMGraphExecutor* g) {
  g->room.nodes = g->num_nodes, g->room.references = g->num_references, g->room.heads = g->num_heads;
  g->room.arguments = g->num_arguments, g->room.rows = g->num_rows, g->room.entries = g->num_entries;
  g->nodes = (Node*)take_memory(g, g->num_nodes, sizeof(Node));
  g->references = (Reference*)take_memory(g, g->num_references, sizeof(Reference));
  g->heads = (Reference*)take_memory(g, g->num_heads, sizeof(Reference));
  g->arguments = (int64_t*)take_memory(g, g->num_arguments, sizeof(int64_t));
  g->rows = (int64_t*)take_memory(g, g->num_rows, sizeof(int64_t));
  g->storage_ids = (int64_t*)take_memory(g, g->num_entries, sizeof(int64_t));
  g->entries = (DLTensor*)take_memory(g, g->num_entries, sizeof(DLTensor));
  const uint32_t most = g->num_references + g->num_entries; /* of one call: never more */
  g->values = (TVMValue*)take_memory(g, most, sizeof(TVMValue));
  g->codes = (int32_t*)take_memory(g, most, sizeof(int32_t));
  if (!g->nodes || !g->references || !g->heads || !g->arguments || !g->rows || !g->storage_ids || !g->entries ||
      !g->values || !g->codes)
    return failed("the platform has no memory for the graph");
  for (uint32_t i = 0; i < g->num_entries; ++i) g->entries[i].device = kProcessor;
  for (uint32_t i = 0; i < most; ++i) g->codes[i] = kTVMDLTensorHandle;
  return 0;
}

int TVMGraphExecutor_Create(const char* sym_json, TVMModuleHandle module_handle, const DLDevice* devices,
                            TVMGraphExecutor** executor) {
  void* memory = NULL;
  TVMGraphExecutor* g;
  *executor = NULL;
  if (!module_handle) return failed("a graph executor needs a module: runtime.SystemLib");
  if (devices && devices[0].device_type != kDLCPU) return failed("a graph executor runs on the processor");
  if (TVMPlatformMemoryAllocate(sizeof *g, kProcessor, &memory) != kTvmErrorNoError)
    return failed("the platform has no memory for the graph");
  g = (TVMGraphExecutor*)memory;
  memset(g, 0, sizeof *g);
  g->module = (const TVMModule*)module_handle;
  *executor = g;
  if (read_graph(g, sym_json) == 0 && take_lists(g) == 0 && read_graph(g, sym_json) == 0 && check_graph(g) == 0 &&
      place_tensors(g) == 0)
    return 0;
  (void)TVMGraphExecutor_Release(executor);
  return -1;
}

int TVMGraphExecutor_Release(TVMGraphExecutor** executor) {
  TVMGraphExecutor* g = *executor;
  void *block, *before;
  int error = 0;
  *executor = NULL;
  if (!g) return 0;
  for (block = g->blocks; block; block = before) {
    memcpy(&before, block, sizeof before);
    error |= TVMPlatformMemoryFree(block, kProcessor) != kTvmErrorNoError;
  }
  error |= TVMPlatformMemoryFree(g, kProcessor) != kTvmErrorNoError;
  return error ? failed("memory that was not in use is freed") : 0;
}

/* ---- tensors */
int TVMGraphExecutor_GetInputIndex(TVMGraphExecutor* g, const char* name) {
  for (uint32_t i = 0; i < g->num_arguments; ++i)
    if (strcmp(g->nodes[g->arguments[i]].name, name) == 0) return (int)i;
  return -1;
}
int TVMGraphExecutor_GetNumInputs(TVMGraphExecutor* g) { return (int)g->num_arguments; }
int TVMGraphExecutor_GetNumOutputs(TVMGraphExecutor* g) { return (int)g->num_heads; }

/* Whether the tensor can be copied byte by byte to or from an entry of the graph. */
static int fits(const DLTensor* t, const DLTensor* entry) {
  int64_t stride = 1;
  for (int32_t i = t->ndim; t->strides && i-- > 0; stride *= t->shape[i])
    if (t->shape[i] != 1 && t->strides[i] != stride) return 0;
  return t->data && t->dtype.code == entry->dtype.code && t->dtype.bits == entry->dtype.bits &&
         t->dtype.lanes == entry->dtype.lanes && bytes_of(t) == bytes_of(entry);
}
int TVMGraphExecutor_SetInput(TVMGraphExecutor* g, const char* name, DLTensor* data_in) {
  const int at = TVMGraphExecutor_GetInputIndex(g, name);
  const DLTensor* to = at < 0 ? NULL : &g->entries[g->rows[g->arguments[at]]];
  if (!to) return failed("the graph has no input of this name");
  if (!fits(data_in, to)) return failed("the tensor is not compact, or not of the input's dtype and size");
  memmove(to->data, (const uint8_t*)data_in->data + data_in->byte_offset, bytes_of(to));
  return 0;
}
int TVMGraphExecutor_GetOutput(TVMGraphExecutor* g, int32_t index, DLTensor* out) {
  const DLTensor* from = index < 0 || (uint32_t)index >= g->num_heads ? NULL : entry_of(g, g->heads[index]);
  if (!from) return failed("the graph has no such output");
  if (!fits(out, from)) return failed("the tensor is not compact, or not of the output's dtype and size");
  memmove((uint8_t*)out->data + out->byte_offset, from->data, bytes_of(from));
  return 0;
}

/* ---- parameters: a mark, zero, names, records of tensors */
typedef struct {
  const uint8_t* at;
  size_t left;
  int bad;
} Bytes;

static const uint8_t* take_bytes(Bytes* b, uint64_t count) {
  const uint8_t* at = b->at;
  if (b->bad || count > b->left) {
    b->bad = 1;
    return NULL;
  }
  b->at += count;
  b->left -= (size_t)count;
  return at;
}
static uint64_t take_number(Bytes* b, int bytes) {
  const uint8_t* at = take_bytes(b, (uint64_t)bytes);
  uint64_t v = 0;
  for (int i = 0; at && i < bytes; ++i) v |= (uint64_t)at[i] << (8 * i);
  return v;
}

int TVMGraphExecutor_LoadParams(TVMGraphExecutor* g, const char* param_blob, uint32_t param_size) {
  static const uint64_t kFile = 0xF7E58D4F05049CB7u, kRecord = 0xDD5E40F096B4A13Fu;
  Bytes names = {(const uint8_t*)param_blob, param_size, 0}, records;
  const int is_file = take_number(&names, 8) == kFile;
  (void)take_number(&names, 8);
  const uint64_t count = take_number(&names, 8);
  records = names;
  for (uint64_t i = 0; i < count && !records.bad; ++i) (void)take_bytes(&records, take_number(&records, 8));
  if (!is_file || take_number(&records, 8) != count || records.bad) return failed("the parameters are damaged");
  for (uint64_t i = 0; i < count; ++i) {
    char name[kMostName];
    const uint64_t length = take_number(&names, 8);
    const uint8_t* text = take_bytes(&names, length);
    const int is_record = take_number(&records, 8) == kRecord;
    (void)take_number(&records, 8), (void)take_number(&records, 8); /* zero, the device */
    const uint64_t rank = take_number(&records, 4), code = take_number(&records, 1), bits = take_number(&records, 1);
    (void)take_number(&records, 2);
    for (uint64_t d = 0; d < rank && !records.bad; ++d) (void)take_number(&records, 8);
    const uint64_t bytes = take_number(&records, 8);
    const uint8_t* data = take_bytes(&records, bytes);
    if (!is_record || names.bad || records.bad) return failed("the parameters are damaged");
    if (length >= sizeof name) continue;
    memcpy(name, text, (size_t)length);
    name[length] = '\0';
    const int at = TVMGraphExecutor_GetInputIndex(g, name);
    if (at < 0) continue;
    DLTensor* to = &g->entries[g->rows[g->arguments[at]]];
    if (to->dtype.code != code || to->dtype.bits != bits || bytes_of(to) != bytes)
      return failed("a parameter is not of the graph's dtype and size");
    if (!linked_param(g, g->storage_ids[g->rows[g->arguments[at]]])) memcpy(to->data, data, (size_t)bytes);
  }
  return 0;
}

int TVMGraphExecutor_Run(TVMGraphExecutor* g) {
  for (uint32_t i = 0; i < g->num_nodes; ++i) {
    const Node* n = &g->nodes[i];
    TVMValue out;
    int32_t out_code = kTVMNullptr, error;
    if (!n->call) continue;
    for (uint32_t k = 0; k < n->num_inputs; ++k) g->values[k].v_handle = entry_of(g, g->references[n->first_input + k]);
    for (uint32_t k = 0; k < n->num_outputs; ++k) g->values[n->num_inputs + k].v_handle = &g->entries[g->rows[i] + k];
    error = n->call(g->values, g->codes, (int32_t)(n->num_inputs + n->num_outputs), &out, &out_code, NULL);
    if (error != 0) return (int)error;
  }
  return 0;
}
