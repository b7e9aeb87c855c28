// SPDX-License-Identifier: Apache-2.0
// Conversion between values of the C interface and Python objects.
#include <cstring>

#include "bind.h"
#include "handles.h"

namespace tilewright::python {
namespace {

// tilewright.classic's NDArray, Device and Map, which are written in Python; without it arrays are numpy's.
PyObject *ndarray_type = nullptr, *device_type = nullptr, *map_type = nullptr;

// An object of a class of this package: an expression, a type, a module of the graph IR, a target ...
bool is_own(nb::handle object) {
  nb::object module =
      nb::getattr(nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))), "__module__", nb::none());
  return nb::isinstance<nb::str>(module) && std::string_view(nb::cast<const char*>(module)).starts_with("tilewright.");
}

nb::dlpack::dtype numpy_dtype(DLDataType t) {
  bool known = t.code == kDLInt || t.code == kDLUInt || t.code == kDLFloat || t.code == kDLBool || t.code == kDLComplex;
  return {known ? t.code : static_cast<uint8_t>(kDLUInt), t.bits, t.lanes};
}

// A tensor in another process (docs/rpc.md): its data pointer is a handle there.
struct RemoteTensor {
  RemoteTensor(const DLTensor& t, nb::handle keeper)
      : tensor(t), shape(t.shape, t.shape + t.ndim), owner(nb::borrow(keeper)) {
    tensor.shape = shape.data();
  }
  RemoteTensor(const RemoteTensor& other) : RemoteTensor(other.tensor, other.owner) {}
  RemoteTensor& operator=(const RemoteTensor&) = delete;
  DLTensor tensor;
  std::vector<int64_t> shape;
  nb::object owner;
};

nb::object wrap_ndarray(const DLTensor& tensor, nb::handle owner) {
  if (static_cast<int32_t>(tensor.device.device_type) >= kFirstRemoteDevice) {
    nb::object remote = nb::cast(RemoteTensor(tensor, owner));
    return ndarray_type ? nb::object(nb::borrow(ndarray_type).attr("_of_remote")(remote)) : remote;
  }
  nb::object array = to_numpy(tensor, owner);
  return ndarray_type ? nb::object(nb::borrow(ndarray_type)(array)) : array;
}

}  // namespace

bool is_device(nb::handle object) { return device_type && PyObject_IsInstance(object.ptr(), device_type) == 1; }

TensorView::TensorView(const ReadArray& a) {
  tensor.data = const_cast<void*>(a.data());
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(a.ndim());
  tensor.dtype = {a.dtype().code, a.dtype().bits, a.dtype().lanes};
  for (size_t i = 0; i < a.ndim(); ++i) {
    shape.push_back(static_cast<int64_t>(a.shape(i)));
    strides.push_back(a.stride(i));
  }
  tensor.shape = shape.data();
  tensor.strides = strides.data();
}

tw_value Borrowed::value(nb::handle object) {
  tw_value v{};
  v.kind = TW_NULL;
  if (object.is_none()) return v;
  const bool has_class =
      (PyLong_Check(object.ptr()) && !PyLong_CheckExact(object.ptr()) && !PyBool_Check(object.ptr())) ||
      (PyFloat_Check(object.ptr()) && !PyFloat_CheckExact(object.ptr())) ||
      (PyUnicode_Check(object.ptr()) && !PyUnicode_CheckExact(object.ptr()));
  if (has_class && between_scripts() && is_own(object)) return value(objects_.emplace_back(nb::cast(held(object))));
  if (PyLong_Check(object.ptr())) {  // includes bool
    v.kind = TW_INT;
    v.as.i = nb::cast<int64_t>(nb::int_(object));
    return v;
  }
  if (PyFloat_Check(object.ptr())) {
    v.kind = TW_FLOAT;
    v.as.f = PyFloat_AS_DOUBLE(object.ptr());
    return v;
  }
  if (PyUnicode_Check(object.ptr())) {
    Py_ssize_t size = 0;
    v.as.str = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
    if (!v.as.str) throw nb::python_error();
    v.kind = TW_STR;
    v.size = static_cast<uint64_t>(size);
    return v;
  }
  if (PyByteArray_Check(object.ptr()) || strcmp(Py_TYPE(object.ptr())->tp_name, "mmap.mmap") == 0) {
    Py_buffer view;  // while it is held, a bytearray cannot be resized and a mapped file stays mapped
    if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    buffers_.push_back(view);
    v.kind = TW_BYTES;
    v.as.bytes = static_cast<const unsigned char*>(view.buf);
    v.size = static_cast<uint64_t>(view.len);
    return v;
  }
  if (PyBytes_Check(object.ptr())) {
    v.kind = TW_BYTES;
    v.as.bytes = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(object.ptr()));
    v.size = static_cast<uint64_t>(PyBytes_GET_SIZE(object.ptr()));
    return v;
  }
  if (is_device(object)) {
    v.kind = TW_DEVICE;
    v.as.device = {static_cast<decltype(v.as.device.device_type)>(nb::cast<int>(object.attr("device_type"))),
                   nb::cast<int32_t>(object.attr("device_id"))};
    return v;
  }
  if (nb::isinstance<RemoteTensor>(object)) {
    v.kind = TW_TENSOR;
    v.as.tensor = &nb::cast<RemoteTensor&>(object).tensor;
    return v;
  }
  if (nb::isinstance<FunctionHandle>(object)) {
    v.kind = TW_FUNCTION;
    v.as.function = nb::cast<FunctionHandle&>(object).get();
    return v;
  }
  if (nb::isinstance<ModuleHandle>(object)) {
    v.kind = TW_MODULE;
    v.as.module = nb::cast<ModuleHandle&>(object).get();
    return v;
  }
  if (ndarray_type &&
      // older numpy's DLPack lacks booleans; its buffers support them
      PyObject_IsInstance(object.ptr(), ndarray_type) == 1)
    return value(objects_.emplace_back(object.attr("_array")));
  if (nb::hasattr(object, "__tw_handle__"))
    return value(objects_.emplace_back(object.attr("__tw_handle__")));  // a Module written in Python
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
    lists_.emplace_back();
    size_t at = lists_.size() - 1;
    for (nb::handle item : object) {
      tw_value one = value(item);  // lists_ may be reallocated
      lists_[at].push_back(one);
    }
    v.kind = TW_ARRAY;
    v.size = lists_[at].size();
    v.as.array = lists_[at].data();
    return v;
  }
  if (nb::hasattr(object, "__dlpack__") || PyMemoryView_Check(object.ptr())) {
    ReadArray array;
    if (nb::try_cast<ReadArray>(object, array)) {
      arrays_.push_back(array);
      v.kind = TW_TENSOR;
      v.as.tensor = &views_.emplace_back(arrays_.back()).tensor;
      return v;
    }
  }
  if (PyDict_CheckExact(object.ptr()) && map_type) return value(objects_.emplace_back(nb::borrow(map_type)(object)));
  if (nb::hasattr(object, "_tvm_tcode") && nb::hasattr(object, "_tvm_handle"))
    return value(objects_.emplace_back(object.attr("_tvm_handle")));  // a class that register_extension marked
  if (is_own(object)) return value(objects_.emplace_back(nb::cast(held(object))));
  if (PyIndex_Check(object.ptr())) {                             // includes numpy's integers
    nb::object index = nb::steal(PyNumber_Index(object.ptr()));  // fails for arrays of strings, for example
    if (!index.is_valid()) throw nb::python_error();
    v.kind = TW_INT;
    v.as.i = nb::cast<int64_t>(index);
    return v;
  }
  if (Py_TYPE(object.ptr())->tp_as_number && Py_TYPE(object.ptr())->tp_as_number->nb_float) {
    v.kind = TW_FLOAT;
    v.as.f = PyFloat_AsDouble(object.ptr());
    if (PyErr_Occurred()) throw nb::python_error();
    return v;
  }
  if (PyCallable_Check(object.ptr())) {
    objects_.push_back(nb::cast(function_of(object)));
    return value(objects_.back());
  }
  std::string message =
      std::string("a ") + Py_TYPE(object.ptr())->tp_name + " cannot be passed to a function of the runtime";
  throw nb::type_error(message.c_str());
}

nb::object to_numpy(const DLTensor& t, nb::handle owner) {
  std::vector<size_t> shape(t.shape, t.shape + t.ndim);
  void* data = static_cast<char*>(t.data) + t.byte_offset;
  return nb::cast(nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner, t.strides, numpy_dtype(t.dtype)));
}

nb::object copy_to_numpy(const DLTensor& t) {
  size_t count = 1;
  for (int i = 0; i < t.ndim; ++i) count *= static_cast<size_t>(t.shape[i]);
  size_t bytes = (count * t.dtype.bits * t.dtype.lanes + 7) / 8;
  auto* data = new char[bytes + 1];
  std::memcpy(data, static_cast<const char*>(t.data) + t.byte_offset, bytes);
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<char*>(p); });
  DLTensor copy = t;
  copy.data = data;
  copy.byte_offset = 0;
  copy.strides = nullptr;
  return to_numpy(copy, owner);
}

nb::object to_python(const tw_value& v, bool owned) {
  switch (v.kind) {
    case TW_INT:
      return nb::int_(v.as.i);
    case TW_FLOAT:
      return nb::float_(v.as.f);
    case TW_STR:
      return nb::steal(PyUnicode_DecodeUTF8(v.as.str, static_cast<Py_ssize_t>(v.size), "replace"));
    case TW_BYTES:
      return nb::bytes(v.as.bytes, v.size);
    case TW_ARRAY: {
      nb::list list;
      for (uint64_t i = 0; i < v.size; ++i) {
        list.append(to_python(v.as.array[i], owned));
        int32_t kind = v.as.array[i].kind;
        if (owned && (kind == TW_FUNCTION || kind == TW_MODULE || kind == TW_NDARRAY))
          v.as.array[i].kind = TW_NULL;  // ownership was transferred
      }
      return list;
    }
    case TW_FUNCTION:
      if (nb::object object = held_object(v.as.function); object.is_valid()) {
        if (owned) tw_function_free(v.as.function);
        return object;
      }
      return nb::cast(FunctionHandle(owned ? v.as.function : tw_function_retain(v.as.function)));
    case TW_MODULE:
      return nb::cast(ModuleHandle(owned ? v.as.module : tw_module_retain(v.as.module)));
    case TW_DEVICE:
      if (!device_type) return nb::make_tuple(static_cast<int>(v.as.device.device_type), v.as.device.device_id);
      return nb::borrow(device_type)(static_cast<int>(v.as.device.device_type), v.as.device.device_id);
    case TW_DTYPE:
      return nb::make_tuple(v.as.dtype.code, v.as.dtype.bits, v.as.dtype.lanes);
    case TW_HANDLE:
      return nb::int_(reinterpret_cast<uintptr_t>(v.as.handle));
    case TW_TENSOR:
      return wrap_ndarray(*v.as.tensor, nb::none());
    case TW_NDARRAY: {
      if (!owned) return wrap_ndarray(v.as.ndarray->dl_tensor, nb::none());
      nb::capsule owner(v.as.ndarray, [](void* p) noexcept {
        auto* managed = static_cast<DLManagedTensor*>(p);
        if (managed->deleter) managed->deleter(managed);
      });
      return wrap_ndarray(v.as.ndarray->dl_tensor, owner);
    }
    default:
      return nb::none();
  }
}

void bind_values(nb::module_& m) {
  nb::class_<RemoteTensor>(m, "RemoteTensor", "A tensor in the memory of another process")
      .def_prop_ro("shape", [](const RemoteTensor& self) { return self.shape; })
      .def_prop_ro("dtype",
                   [](const RemoteTensor& self) {
                     return nb::make_tuple(self.tensor.dtype.code, self.tensor.dtype.bits, self.tensor.dtype.lanes);
                   })
      .def_prop_ro("device",
                   [](const RemoteTensor& self) {
                     return nb::make_tuple(static_cast<int>(self.tensor.device.device_type),
                                           self.tensor.device.device_id);
                   })
      .def_prop_ro("data", [](const RemoteTensor& self) { return reinterpret_cast<uintptr_t>(self.tensor.data); });
  m.def("_set_types", [](nb::object ndarray, nb::object device, nb::object map) {  // never released
    ndarray_type = ndarray.release().ptr();
    device_type = device.release().ptr();
    map_type = map.release().ptr();
  });
}

}  // namespace tilewright::python
