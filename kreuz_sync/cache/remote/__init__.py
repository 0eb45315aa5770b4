"""Records in Redis: what `kreuz_sync.cache.redis` is made of."""
