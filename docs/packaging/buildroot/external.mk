include $(sort $(wildcard $(BR2_EXTERNAL_RDMATEST_PATH)/package/*/*.mk))
