// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title InnTab
/// @notice Guests write what they take on the tab of their table and pay it at the end.
contract InnTab {
    struct Entry {
        address guest;
        uint256 price;
    }

    address public immutable innkeeper;
    mapping(uint256 => Entry[]) private entries;
    mapping(uint256 => uint256) public sumOf;
    mapping(uint256 => bool) public closed;
    uint256 public tabCount;

    event TabOpened(uint256 indexed tab);
    event Written(uint256 indexed tab, address indexed guest, uint256 price);
    event TabClosed(uint256 indexed tab, uint256 total);

    constructor() {
        innkeeper = msg.sender;
    }

    function openTab() external returns (uint256 tab) {
        require(msg.sender == innkeeper, "not innkeeper");
        tab = tabCount++;
        emit TabOpened(tab);
    }

    /// @notice Writes something on a tab.
    function write(uint256 tab, uint256 price) external {
        require(tab < tabCount && !closed[tab], "no open tab");
        entries[tab].push(Entry(msg.sender, price));
        sumOf[tab] += price;
        emit Written(tab, msg.sender, price);
    }

    /// @notice Pays a tab and closes it.
    function closeTab(uint256 tab) external payable {
        require(tab < tabCount && !closed[tab], "no open tab");
        uint256 total = sumOf[tab];
        require(msg.value == total, "wrong sum");
        closed[tab] = true;
        emit TabClosed(tab, total);
        (bool sent, ) = innkeeper.call{value: total}("");
        require(sent, "transfer failed");
    }

    function entryAt(uint256 tab, uint256 position) external view returns (Entry memory) {
        return entries[tab][position];
    }
}
