// The driver's functions on streams, copies, fills and events.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/driver/Driver.h"

using namespace ortc::emulator;

namespace {

/// As the driver does it: copies from pageable memory take the data at once, copies to it are done when they
/// return.
ortc_cu_result enqueueCopy(Device &device, ortc_cu_stream handle, CopyWork work) {
  ortc_cu_stream_s *stream = device.find(handle);
  if (!stream)
    return ORTC_CU_INVALID_HANDLE;
  if ((!work.isFromDevice && !work.from) || (!work.isToDevice && !work.to))
    return work.width && work.height ? ORTC_CU_INVALID_VALUE : ORTC_CU_SUCCESS;
  const bool isLater = device.options.isLazy && !stream->capture;
  const uint64_t bytes = work.height ? (work.height - 1) * work.fromPitch + work.width : 0;
  if (isLater && !work.isFromDevice && !device.isPinned(work.from, bytes)) {
    const std::byte *from = reinterpret_cast<const std::byte *>(work.from);
    work.taken.assign(from, from + bytes);
  }
  const uint64_t written = work.height ? (work.height - 1) * work.toPitch + work.width : 0;
  const bool isDoneNow = isLater && !work.isToDevice && !device.isPinned(work.to, written);
  if (ortc_cu_result result = device.enqueue(handle, std::move(work)))
    return result;
  return isDoneNow ? device.drain(*stream) : ORTC_CU_SUCCESS;
}

uint64_t addressOf(const void *memory) { return reinterpret_cast<uint64_t>(memory); }

} // namespace

ORTC_DRIVER cuMemcpyHtoDAsync_v2(ortc_cu_pointer to, const void *from, size_t bytes, ortc_cu_stream stream) {
  Call call(Call::Needs::Context);
  return call ? enqueueCopy(call.device, stream,
                            {false, true, addressOf(from), to, bytes, 1, bytes, bytes, {}})
              : call.result;
}

ORTC_DRIVER cuMemcpyDtoHAsync_v2(void *to, ortc_cu_pointer from, size_t bytes, ortc_cu_stream stream) {
  Call call(Call::Needs::Context);
  return call ? enqueueCopy(call.device, stream,
                            {true, false, from, addressOf(to), bytes, 1, bytes, bytes, {}})
              : call.result;
}

ORTC_DRIVER cuMemcpyDtoDAsync_v2(ortc_cu_pointer to, ortc_cu_pointer from, size_t bytes,
                                 ortc_cu_stream stream) {
  Call call(Call::Needs::Context);
  return call ? enqueueCopy(call.device, stream, {true, true, from, to, bytes, 1, bytes, bytes, {}})
              : call.result;
}

ORTC_DRIVER cuMemcpy2DAsync_v2(const ortc_cu_memcpy2d *copy, ortc_cu_stream stream) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  if (!copy)
    return ORTC_CU_INVALID_VALUE;
  const bool isFromDevice = copy->src_type == ORTC_CU_MEMORY_DEVICE,
             isToDevice = copy->dst_type == ORTC_CU_MEMORY_DEVICE;
  const uint64_t fromPitch = copy->src_pitch ? copy->src_pitch : copy->width + copy->src_x;
  const uint64_t toPitch = copy->dst_pitch ? copy->dst_pitch : copy->width + copy->dst_x;
  if ((!isFromDevice && copy->src_type != ORTC_CU_MEMORY_HOST) ||
      (!isToDevice && copy->dst_type != ORTC_CU_MEMORY_HOST) || fromPitch < copy->width + copy->src_x ||
      toPitch < copy->width + copy->dst_x)
    return ORTC_CU_INVALID_VALUE;
  uint64_t from = isFromDevice ? copy->src_device : addressOf(copy->src_host);
  uint64_t to = isToDevice ? copy->dst_device : addressOf(copy->dst_host);
  return enqueueCopy(call.device, stream,
                     {isFromDevice,
                      isToDevice,
                      from + copy->src_y * fromPitch + copy->src_x,
                      to + copy->dst_y * toPitch + copy->dst_x,
                      copy->width,
                      copy->height,
                      fromPitch,
                      toPitch,
                      {}});
}

ORTC_DRIVER cuMemsetD8Async(ortc_cu_pointer to, unsigned char value, size_t count, ortc_cu_stream stream) {
  Call call(Call::Needs::Context);
  return call ? call.device.enqueue(stream, FillWork{to, count, value, 1}) : call.result;
}

ORTC_DRIVER cuMemsetD32Async(ortc_cu_pointer to, unsigned value, size_t count, ortc_cu_stream stream) {
  Call call(Call::Needs::Context);
  return call ? call.device.enqueue(stream, FillWork{to, count, value, 4}) : call.result;
}

ORTC_DRIVER cuStreamCreate(ortc_cu_stream *stream, unsigned flags) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  if (!stream || flags > ORTC_CU_STREAM_NON_BLOCKING)
    return ORTC_CU_INVALID_VALUE;
  auto made = std::make_unique<ortc_cu_stream_s>();
  *stream = made.get();
  call.device.streams[*stream] = std::move(made);
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuStreamDestroy_v2(ortc_cu_stream stream) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  ortc_cu_stream_s *found = stream ? call.device.find(stream) : nullptr;
  if (!found)
    return ORTC_CU_INVALID_HANDLE;
  ortc_cu_result result = call.device.drain(*found);
  call.device.streams.erase(stream);
  return result;
}

ORTC_DRIVER cuStreamSynchronize(ortc_cu_stream stream) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  ortc_cu_stream_s *found = call.device.find(stream);
  if (!found)
    return ORTC_CU_INVALID_HANDLE;
  if (found->capture) {
    found->isCaptureBroken = true;
    return ORTC_CU_STREAM_CAPTURE_UNSUPPORTED;
  }
  return call.device.drain(*found);
}

/// What the event was recorded behind is done first.
ORTC_DRIVER cuStreamWaitEvent(ortc_cu_stream stream, ortc_cu_event event, unsigned) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  if (!call.device.find(stream) || !call.device.events.count(event))
    return ORTC_CU_INVALID_HANDLE;
  ortc_cu_stream_s *recorded = event->isRecorded ? call.device.find(event->stream) : nullptr;
  return recorded && !recorded->capture ? call.device.drain(*recorded) : ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuStreamBeginCapture_v2(ortc_cu_stream stream, int mode) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  ortc_cu_stream_s *found = call.device.find(stream);
  if (!found)
    return ORTC_CU_INVALID_HANDLE;
  if (!stream || mode < ORTC_CU_CAPTURE_GLOBAL || mode > ORTC_CU_CAPTURE_RELAXED)
    return stream ? ORTC_CU_INVALID_VALUE : ORTC_CU_STREAM_CAPTURE_UNSUPPORTED;
  if (found->capture)
    return ORTC_CU_STREAM_CAPTURE_UNSUPPORTED;
  if (ortc_cu_result result = call.device.drain(*found))
    return result;
  found->capture = std::make_unique<ortc_cu_graph_s>();
  found->captureMode = mode;
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuStreamEndCapture(ortc_cu_stream stream, ortc_cu_graph *graph) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  ortc_cu_stream_s *found = call.device.find(stream);
  if (!found)
    return ORTC_CU_INVALID_HANDLE;
  if (!found->capture || !graph)
    return graph ? ORTC_CU_STREAM_CAPTURE_UNMATCHED : ORTC_CU_INVALID_VALUE;
  std::unique_ptr<ortc_cu_graph_s> captured = std::move(found->capture);
  *graph = nullptr;
  if (found->isCaptureBroken) {
    found->isCaptureBroken = false;
    return ORTC_CU_STREAM_CAPTURE_INVALIDATED;
  }
  *graph = captured.get();
  call.device.graphs[*graph] = std::move(captured);
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuEventCreate(ortc_cu_event *event, unsigned) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  if (!event)
    return ORTC_CU_INVALID_VALUE;
  auto made = std::make_unique<ortc_cu_event_s>();
  *event = made.get();
  call.device.events[*event] = std::move(made);
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuEventRecord(ortc_cu_event event, ortc_cu_stream stream) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  ortc_cu_stream_s *found = call.device.find(stream);
  if (!call.device.events.count(event) || !found)
    return ORTC_CU_INVALID_HANDLE;
  if (found->capture) // between nodes that follow each other anyway
    return ORTC_CU_SUCCESS;
  event->isRecorded = true;
  event->stream = stream;
  return call.device.enqueue(stream, EventWork{event});
}

ORTC_DRIVER cuEventSynchronize(ortc_cu_event event) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  if (!call.device.events.count(event))
    return ORTC_CU_INVALID_HANDLE;
  ortc_cu_stream_s *recorded = event->isRecorded ? call.device.find(event->stream) : nullptr;
  return recorded && !recorded->capture ? call.device.drain(*recorded) : ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuEventElapsedTime(float *milliseconds, ortc_cu_event start, ortc_cu_event end) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  if (!call.device.events.count(start) || !call.device.events.count(end) || !start->isRecorded ||
      !end->isRecorded)
    return ORTC_CU_INVALID_HANDLE;
  if (!milliseconds)
    return ORTC_CU_INVALID_VALUE;
  for (ortc_cu_event event : {start, end})
    if (ortc_cu_stream_s *stream = call.device.find(event->stream))
      if (!stream->waiting.empty())
        return ORTC_CU_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuEventDestroy_v2(ortc_cu_event event) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  if (!call.device.events.count(event))
    return ORTC_CU_INVALID_HANDLE;
  if (ortc_cu_result result = call.device.drainAll())
    return result;
  call.device.events.erase(event);
  return ORTC_CU_SUCCESS;
}
